/** Sockets passed by systemd's protocol: which descriptor is for which address. */
import t from 'tap'
import { handedSockets } from '../../../../core/cli/start/handed-sockets.ts'

const handed = (env: NodeJS.ProcessEnv): [string, number][] => [...handedSockets(env)]

void t.test('descriptors are assigned by name, or else by order', (t) => {
	t.strictSame(handed({}), [])
	t.strictSame(handed({ LISTEN_FDS: '0' }), [])
	t.strictSame(handed({ LISTEN_FDS: '1' }), [['main', 3]])
	t.strictSame(handed({ LISTEN_FDS: '2', LISTEN_FDNAMES: 'legacy:main' }), [
		['legacy', 3],
		['main', 4],
	])
	t.strictSame(handed({ LISTEN_FDS: '1', LISTEN_FDNAMES: 'legacy' }), [['legacy', 3]])
	t.strictSame(handed({ LISTEN_FDS: '2', LISTEN_FDNAMES: 'a.socket:b.socket' }), [
		['main', 3],
		['legacy', 4],
	])
	t.throws(() => handed({ LISTEN_FDS: '3' }), { code: 'config_invalid', message: /hands over 3 sockets/ })
	t.end()
})

void t.test('descriptors for another process are ignored, and the variables are removed', (t) => {
	t.strictSame(handed({ LISTEN_FDS: '1', LISTEN_PID: '1' }), [])
	t.strictSame(handed({ LISTEN_FDS: '1', LISTEN_PID: String(process.pid) }), [['main', 3]])
	const env = { LISTEN_FDS: '1', LISTEN_FDNAMES: 'main', LISTEN_PID: '1', HOME: '/' }
	handedSockets(env)
	t.strictSame(env, { HOME: '/' })
	t.end()
})
