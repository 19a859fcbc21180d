/** The gateway's process: 1 settings of the process · 2 boot · 3 signals · 4 greeting. */
import { enableCompileCache } from 'node:module'
import type { Logger } from './log.ts'

enableCompileCache()
// A terminal or pipe that is gone is no reason to end.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})
// What a plugin throws in a timer of its own must not take the others down; it is logged loudly instead.
const own: { log?: Logger } = {}
const report = (error: unknown): void => {
	if (own.log) return own.log.fatal({ err: error }, 'an error was thrown and nobody caught it')
	process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
	process.exitCode = 1
}
process.on('uncaughtException', report)
process.on('unhandledRejection', report)
const { boot } = await import('./boot.ts')
const { homeFolder } = await import('../config/home.ts')
const { isFault } = await import('./errors.ts')
const { greeting } = await import('./greeting.ts')

/** sysexits(3): a configuration error, and everything else that keeps the gateway from starting. */
const EX_CONFIG = 78
const EX_UNAVAILABLE = 69
const SAME_SIGNAL_MS = 1_000

const home = homeFolder(process.env)
const running = await boot({ home, env: process.env }).catch((error: unknown) => {
	if (!isFault(error)) report(error)
	else process.stderr.write(`The gateway does not start.\n${error.message}\n`)
	process.exit(!isFault(error) ? 1 : error.code === 'config_invalid' ? EX_CONFIG : EX_UNAVAILABLE)
})

const { gateway } = running
own.log = running.log
let stopping = 0
const end = (signal: string): void => {
	// A terminal's Ctrl-C comes twice, from it and by whoever started us; a person's second one comes later.
	if (stopping > 0 && performance.now() - stopping < SAME_SIGNAL_MS) return
	if (stopping > 0) process.exit(1)
	stopping = performance.now()
	running.log.info(
		`${signal}: stopping; runs under way have ${running.config.server.shutdown_grace_s} s, what is left goes on after the next start. Once more: now`,
	)
	running.stop().then(
		() => process.exit(0),
		(error: unknown) => {
			running.log.error({ err: error }, 'the gateway did not stop cleanly')
			process.exit(1)
		},
	)
}
process.on('SIGINT', end)
process.on('SIGTERM', end)
// A terminal that is closed ends what it started; without one, SIGHUP means: read the settings again.
process.on('SIGHUP', () => (process.stdin.isTTY ? end('SIGHUP') : void gateway.reload().catch(() => {})))
// Started by core/launch.mjs, and that was killed.
process.on('disconnect', () => end('the launcher is gone'))
process.channel?.unref()

// Behind the signals: whoever reads it may end the gateway at once.
process.stdout.write(
	greeting({
		url: gateway.status.url('main'),
		legacy_url: gateway.status.url('legacy'),
		home,
		config: running.config,
		env: process.env,
		cwd: process.cwd(),
	}),
)
