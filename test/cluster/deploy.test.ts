/** The files for servers of NATS in docs/deploy, and encrypted connections. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openNats } from '../../plugins/cluster/nats/open.ts'
import { natsPath, startNats, withoutNats } from '../support/nats.ts'

const folder = fileURLToPath(new URL('../../docs/deploy/', import.meta.url))
const run = (command: string, args: string[], env: NodeJS.ProcessEnv = {}) =>
	spawnSync(command, args, { encoding: 'utf8', env: { ...process.env, ...env } })
const has = (command: string): boolean => spawnSync(command, ['--version']).error === undefined
const skip = withoutNats() || (has('openssl') ? false : 'openssl is missing')

/** Makes an authority, and a certificate for 127.0.0.1 and localhost: ca.pem, server.pem and server-key.pem. Returns the folder. */
function certificates(place: string): string {
	const at = (name: string): string => join(place, name)
	const ssl = (...args: string[]): void => {
		const { status, stderr } = run('openssl', args)
		if (status !== 0) throw new Error(stderr)
	}
	const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
	ssl('req', '-x509', ...key, '-keyout', at('ca-key.pem'), '-out', at('ca.pem'), '-subj', '/CN=test', '-days', '2')
	ssl('req', ...key, '-keyout', at('server-key.pem'), '-out', at('server.csr'), '-subj', '/CN=localhost')
	writeFileSync(at('names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
	const signed = [
		'-CA',
		at('ca.pem'),
		'-CAkey',
		at('ca-key.pem'),
		'-CAcreateserial',
		'-days',
		'2',
		'-extfile',
		at('names'),
	]
	ssl('x509', '-req', '-in', at('server.csr'), '-out', at('server.pem'), ...signed)
	return place
}

void t.test('nats-server accepts nats.conf', { skip }, (t) => {
	const place = certificates(t.testdir())
	const file = join(place, 'nats.conf')
	const text = readFileSync(join(folder, 'nats.conf'), 'utf8')
	writeFileSync(file, text.replaceAll('/etc/nats', place).replaceAll('/var/lib/nats', join(place, 'data')))
	const env = { NATS_NAME: 'n1', NATS_PASSWORD: 'guessme', NATS_CLUSTER_PASSWORD: 'guessthis' }
	const { status, stderr } = run(natsPath(), ['-c', file, '-t'], env)
	t.equal(status, 0, stderr)
	t.not(run(natsPath(), ['-c', file, '-t'], { NATS_NAME: 'n1' }).status, 0, 'without the passwords it is refused')
	t.end()
})

void t.test('systemd accepts the unit', { skip: has('systemd-analyze') ? false : 'systemd is missing' }, (t) => {
	const unit = readFileSync(join(folder, 'nats-server.service'), 'utf8')
	const file = join(t.testdir(), 'nats-server.service')
	// The program and its user need not exist here.
	writeFileSync(file, unit.replace(/^(User|Group)=.*$/gm, '').replaceAll('/usr/sbin/nats-server', process.execPath))
	const { status, stderr } = run('systemd-analyze', ['verify', file])
	t.equal(status, 0, stderr)
	t.notMatch(stderr, /nats-server\.service/)
	t.end()
})

void t.test('a connection is encrypted, and both sides are authenticated', { skip }, async (t) => {
	const place = certificates(t.testdir())
	const ca_file = join(place, 'ca.pem')
	await using cluster = await startNats(1, {
		more: `
tls { cert_file: ${join(place, 'server.pem')}, key_file: ${join(place, 'server-key.pem')} }
authorization { user: gateway, password: guessme }
`,
	})
	const [address = ''] = cluster.nodes.map((node) => node.address)
	const open = (user: string, tls: object) =>
		openNats({ url: `tls://${user}@${address}`, prefix: 'tls', replicas: 1, tls })
	await using engine = await open('gateway:guessme', { ca_file })
	await engine.store.put(['a'], 1)
	t.equal((await engine.store.get(['a']))?.value, 1)
	for (const [user, tls] of [
		['gateway:guessed', { ca_file }],
		['gateway:guessme', {}],
	] as const) {
		const error = await open(user, tls).catch((thrown: unknown) => thrown as Error)
		t.match(error, { code: 'unavailable', message: /no server of the cluster can be used/ })
		t.notMatch(String(error), /guess/)
	}
})
