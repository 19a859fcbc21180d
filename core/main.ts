/** The gateway's process: 1 settings of the process · 2 boot · 3 greeting · 4 signals. */
import { enableCompileCache } from 'node:module'

enableCompileCache()
const { boot } = await import('./boot.ts')
const { homeFolder } = await import('../config/home.ts')
const { isFault } = await import('./errors.ts')

/** sysexits(3): a configuration error, and everything else that keeps the gateway from starting. */
const EX_CONFIG = 78
const EX_UNAVAILABLE = 69

const home = homeFolder(process.env)
const running = await boot({ home, env: process.env }).catch((error: unknown) => {
	if (!isFault(error)) throw error
	process.stderr.write(`The gateway does not start.\n${error.message}\n`)
	process.exit(error.code === 'config_invalid' ? EX_CONFIG : EX_UNAVAILABLE)
})

const { gateway, log } = running
const url = gateway.status.url('main')
const legacyUrl = gateway.status.url('legacy')
process.stdout.write(`
The gateway listens at ${url}${legacyUrl ? ` (older chat surface: ${legacyUrl})` : ''}
Home: ${home} · settings: ${home}/config/gateway.yaml (applied as you save)

Try:
  curl -s ${url}/v1/agents -H 'content-type: application/json' -d '{"name": "ada"}'
  curl -s ${url}/v1/agents/ada/runs -H 'content-type: application/json' -d '{"prompt": "Hello"}'
  curl -N ${url}/v1/events/stream

`)

let stopping = false
const end = (signal: NodeJS.Signals): void => {
	if (stopping) process.exit(1) // asked twice: now
	stopping = true
	log.info(
		`${signal}: stopping; runs under way have ${running.config.server.shutdown_grace_s} s, what is left goes on after the next start`,
	)
	running.stop().then(
		() => process.exit(0),
		(error: unknown) => {
			log.error({ err: error }, 'the gateway did not stop cleanly')
			process.exit(1)
		},
	)
}
process.on('SIGINT', end)
process.on('SIGTERM', end)
process.on('SIGHUP', () => void gateway.reload().catch(() => {}))
// A bug in a plugin's event handler or timer must not take the others down; it is logged loudly instead.
process.on('unhandledRejection', (error) => log.error({ err: error }, 'a promise was rejected and nobody looked'))
