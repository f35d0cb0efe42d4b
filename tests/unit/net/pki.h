/* SPDX-License-Identifier: MIT */
#ifndef TESTS_NET_PKI_H
#define TESTS_NET_PKI_H

/*
 * Keys and certificates for tests, valid from 2020 to 2120: a CA, a server "kube.test"
 * and a client by it, and a CA that vouches for nobody. They protect nothing.
 */
static const char pki_ca[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBRTCB7aADAgECAgEBMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMMB3Rlc3QgY2Ew\n"
	"IBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBIxEDAOBgNVBAMMB3Rl\n"
	"c3QgY2EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR/ynznabeOsavG9d/wzmtj\n"
	"PVXPJzLsw1uFSxWOzFGjHpqNi0DTxiwcV8IxLmOzHkwM64Tw+AoLzziIy2rHXhDm\n"
	"ozIwMDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBQsF4KbHaB3eh9aso8RO9E/\n"
	"ezeS5DAKBggqhkjOPQQDAgNHADBEAiBhpAOsAb7jqpKcs5HhpVqVAhMRH/cNfVuK\n"
	"SlaYo3+yjwIgU7Bsb3qgLaNNMOucORRbkk4oVqAPFdWT5zFKjzvzxFg=\n"
	"-----END CERTIFICATE-----\n";

static const char pki_other_ca[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBSDCB76ADAgECAgECMAoGCCqGSM49BAMCMBMxETAPBgNVBAMMCG90aGVyIGNh\n"
	"MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjATMREwDwYDVQQDDAhv\n"
	"dGhlciBjYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCdeebxUkBwLTpcwixt3\n"
	"SoN3DeQvSP7sigtKfqDc0VfAWU95kWFheXkegcTtdrJYnLHahlEE86vQfYQDx3z/\n"
	"sxOjMjAwMA8GA1UdEwEB/wQFMAMBAf8wHQYDVR0OBBYEFEDPs9kLwHr1zo8AYfRM\n"
	"CN6fv11tMAoGCCqGSM49BAMCA0gAMEUCIA5VZuezObX0rh8Gt/zQaVemGoi7b0zV\n"
	"Adk/PdBrdLWcAiEAvdHjVIBmjQMAybWQhI4XKU6J8q3iSyVJKCWXy7lZHIM=\n"
	"-----END CERTIFICATE-----\n";

static const char pki_server[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBajCCAQ+gAwIBAgIBAzAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAd0ZXN0IGNh\n"
	"MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAOMQwwCgYDVQQDDANz\n"
	"cnYwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASNlRjHGwHy6cFkH4Hrcm7P93tf\n"
	"igwmxSW1m9hB1gsgfsgGikZgPq77Tp+6IxjteJE7wQHjh2o0CoGOqYehlBC/o1gw\n"
	"VjAUBgNVHREEDTALgglrdWJlLnRlc3QwHQYDVR0OBBYEFIGrvfegtf+eK2yKBWPU\n"
	"zRf0LwAcMB8GA1UdIwQYMBaAFCwXgpsdoHd6H1qyjxE70T97N5LkMAoGCCqGSM49\n"
	"BAMCA0kAMEYCIQC6I/Ra24Nlv19uWovWF3KD1KFiEBqO3hmOz1HBTZJncwIhAM0l\n"
	"8tpyLcgl24pukcX3XP6m2xGyxeIlujAfYE0SMc0J\n"
	"-----END CERTIFICATE-----\n";
static const char pki_server_key[] =
	"-----BEGIN EC PRIVATE KEY-----\n"
	"MHcCAQEEIIMUQxfuNHcqdUey6MsTSipkcVtWCnpLJrqhvVVgBbsBoAoGCCqGSM49\n"
	"AwEHoUQDQgAEjZUYxxsB8unBZB+B63Juz/d7X4oMJsUltZvYQdYLIH7IBopGYD6u\n"
	"+06fuiMY7XiRO8EB44dqNAqBjqmHoZQQvw==\n"
	"-----END EC PRIVATE KEY-----\n";

static const char pki_client[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBXjCCAQSgAwIBAgIBBDAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAd0ZXN0IGNh\n"
	"MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAOMQwwCgYDVQQDDANj\n"
	"bGkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARxEv4Srj/qWwQwNYWiiZcCeUZQ\n"
	"+lwJddvWDA7aR1RIX+/DsYDg6O3Rc2cCy+O77NAxBur3XAWEQpv7hHKmzY+9o00w\n"
	"SzAJBgNVHRMEAjAAMB0GA1UdDgQWBBQTqz4ML8lEEzlbTQmfFNWZ13AxUjAfBgNV\n"
	"HSMEGDAWgBQsF4KbHaB3eh9aso8RO9E/ezeS5DAKBggqhkjOPQQDAgNIADBFAiEA\n"
	"11bC084DnnMsFViWa86CdibmAqnarlJ+ghOIoh5r94UCIF909NPLwas4ObcqcNaU\n"
	"w+u3wS60RU18xrWNpOvHvkuo\n"
	"-----END CERTIFICATE-----\n";
static const char pki_client_key[] =
	"-----BEGIN EC PRIVATE KEY-----\n"
	"MHcCAQEEIBqln9LRrtG9duAYxRLv0JmBYtJWZFlwajyPbGVYuqyUoAoGCCqGSM49\n"
	"AwEHoUQDQgAEcRL+Eq4/6lsEMDWFoomXAnlGUPpcCXXb1gwO2kdUSF/vw7GA4Ojt\n"
	"0XNnAsvju+zQMQbq91wFhEKb+4Ryps2PvQ==\n"
	"-----END EC PRIVATE KEY-----\n";

#endif
