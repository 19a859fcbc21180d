import t from 'tap'
import { openEngine } from '../../../core/engines/open.ts'
import { readConfig } from '../../../core/host/config.ts'

void t.test('an unknown scheme is refused with the known ones, without showing the password', async (t) => {
	const home = t.testdir()
	const { store } = readConfig({ home, env: {} })
	const opened = openEngine({ store: { ...store, url: 'redis://user:hunter2@n1:6379' }, home })
	const error = (await t.rejects(opened, { code: 'config_invalid' })) as unknown as Error
	t.match(error.message, /^store\.url: .*"redis:".*nats:\/\/, tls:\/\/$/)
	t.notMatch(error.message, 'hunter2')
})

void t.test('a plugin declares the settings of its engine, with variables; paths become absolute', (t) => {
	const home = t.testdir()
	const text = 'store: { url: "nats://n1:4222", tls: { ca_file: keys/ca.pem } }\n'
	const env = { SVC_CLUSTER_PREFIX: 'other', SVC_CLUSTER_REPLICAS: '1', SVC_CLUSTER_CREDENTIALS: '/etc/nats.creds' }
	t.match(readConfig({ home, env, text }).store, {
		url: 'nats://n1:4222',
		prefix: 'other',
		replicas: 1,
		credentials_file: '/etc/nats.creds',
		tls: { ca_file: `${home}/keys/ca.pem`, cert_file: null, key_file: null },
	})
	t.throws(() => readConfig({ home, env: { SVC_CLUSTER_REPLICAS: '2' }, text }), { message: /SVC_CLUSTER_REPLICAS/ })
	t.throws(() => readConfig({ home, env: { SVC_CLUSTER: 'redis://n1' } }), { message: /SVC_CLUSTER.*nats:\/\// })
	t.throws(() => readConfig({ home, env: {}, text: 'plugins: { cluster: false }\n' }), {
		message: /plugins\.cluster: the gateway cannot run without cluster/,
	})
	t.end()
})
