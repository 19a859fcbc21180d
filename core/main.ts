/** The gateway's process: 1 settings of the process · 2 boot · 3 signals · 4 startup banner. */
import { writeFileSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import type { Waiting } from './boot.ts'
import type { Gateway } from './gateway.ts'
import type { UpgradeProgress } from './upgrade/progress.ts'

enableCompileCache()
nameProcess()
// A closed terminal or pipe is no reason to exit.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})
// An error that a plugin throws in a timer must not end the other plugins: the gateway reports it.
const own: { gateway?: Gateway } = {}
const printError = (error: unknown): void => {
	process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
	process.exitCode = 1
}
const report = (error: unknown): void => (own.gateway ? own.gateway.uncaught(error) : printError(error))
process.on('uncaughtException', report)
process.on('unhandledRejection', report)
process.on('exit', (code) => own.gateway?.exits(code))
const {
	boot,
	handedSockets,
	homeFolder,
	isFault,
	releaseStartMemory,
	removeRuntimeFile,
	serviceManager,
	startupBanner,
} = await import('./cli/start/start-parts.ts')

/** sysexits(3): a configuration error, and everything else that keeps the gateway from starting. */
const EX_CONFIG = 78
const EX_UNAVAILABLE = 69
/** The service manager should start the process again. */
const EX_TEMPFAIL = 75
const SAME_SIGNAL_MS = 1_000
const PARENT_CHECK_MS = 1_000

/** When the first stop signal arrived, by `performance.now()`; 0 if none has. */
let stopRequestedAt = 0
let hasWaited = false
/** The percentage of the upgrade that was shown last. */
let shownPercent = -1
const notify = serviceManager(process.env, (message) => process.stderr.write(`${message}\n`))
const stopWaiting = new AbortController()
const endsWait = ['SIGINT', 'SIGTERM', 'disconnect'] as const
const { home, handed, running } = await start().catch((error: unknown) => {
	if (stopWaiting.signal.aborted) process.exit(0)
	if (!isFault(error)) printError(error)
	else process.stderr.write(`The gateway does not start.\n${error.message}\n`)
	process.exit(!isFault(error) ? 1 : error.code === 'config_invalid' ? EX_CONFIG : EX_UNAVAILABLE)
})

async function start() {
	const home = homeFolder(process.env)
	const handed = handedSockets(process.env)
	const running = await boot({
		home,
		env: process.env,
		handed,
		noBackup: process.argv.includes('--no-backup'),
		upgrading: showUpgrade,
		created: (gateway) => (own.gateway = gateway),
		stopWaiting: stopWaiting.signal,
		waiting: showWait,
	})
	return { home, handed, running }
}

/** For a waiting gateway, which listens and forwards requests until it takes over. */
function showWait({ url, holder }: Waiting): void {
	if (hasWaited) return
	hasWaited = true
	notify('READY=1', `STATUS=Waits and forwards requests to the gateway ${holder}`)
	process.stdout.write(
		`The gateway waits and listens at ${url}: it forwards requests to the gateway ${holder}, which works on the same data\n`,
	)
	for (const name of endsWait) process.on(name, endWait)
}

function endWait(): void {
	if (stopWaiting.signal.aborted && performance.now() - stopRequestedAt > SAME_SIGNAL_MS) process.exit(1)
	if (stopRequestedAt === 0) notify('STOPPING=1')
	if (stopRequestedAt === 0) stopRequestedAt = performance.now()
	stopWaiting.abort()
}

/** Shows the progress on one line of a terminal, and to systemd. Without either, the log shows it. */
function showUpgrade({ percent, text }: UpgradeProgress): void {
	if (percent === shownPercent) return
	shownPercent = percent
	notify(`STATUS=Upgrading the home: ${text}`)
	if (process.stdout.isTTY) process.stdout.write(`\r\x1b[KUpgrading the home: ${text}${percent === 100 ? '\n' : ''}`)
}

/** For ps, top and systemctl, which show "MainThread" otherwise. `process.title` would overwrite the command line. */
function nameProcess(): void {
	try {
		writeFileSync('/proc/self/comm', 'svc-gateway')
	} catch {
		// Only Linux has such a file.
	}
}

const { gateway } = running
void running.lost?.then(({ message }) => {
	if (stopRequestedAt > 0) process.exit(0) // it was told to stop, so it must not restart
	// Without draining: it must not repeat another gateway's work. Nothing is lost, since the data is on other servers.
	running.log.warn(`${message}; this gateway restarts`)
	removeRuntimeFile(home)
	const { execPath, execArgv, argv, env } = process
	// execve would lose sockets that were handed over; the service manager that holds them restarts the process.
	if (process.platform !== 'win32' && handed.size === 0)
		process.execve?.(execPath, [execPath, ...execArgv, ...argv.slice(1)], env)
	process.exit(EX_TEMPFAIL)
})
const end = (signal: string): void => {
	// One Ctrl-C arrives twice: from the terminal and from the parent process. A second key press arrives later.
	if (stopRequestedAt > 0 && performance.now() - stopRequestedAt < SAME_SIGNAL_MS) return
	if (stopRequestedAt > 0) process.exit(1)
	stopRequestedAt = performance.now()
	notify('STOPPING=1')
	running.log.info(
		`${signal}: stopping; running runs have ${running.config.server.shutdown_grace_s} s, the rest continue after the next start. Send the signal again to stop now`,
	)
	running.stop().then(
		() => process.exit(0),
		(error: unknown) => {
			running.log.error({ err: error }, 'the gateway did not stop cleanly')
			process.exit(1)
		},
	)
}
for (const name of endsWait) process.off(name, endWait)
process.on('SIGINT', end)
process.on('SIGTERM', end)
// A closed terminal ends the gateway that it started. Without a terminal, SIGHUP means reload.
process.on('SIGHUP', () => (process.stdin.isTTY ? end('SIGHUP') : void gateway.reload().catch(() => {})))
// core/launch.mjs was killed. It is the parent process only if it could not be replaced by this one.
process.on('disconnect', () => end('the launcher is gone'))
process.channel?.unref()
// npm exits on a signal without forwarding it.
const parent = process.ppid
if (process.env.npm_lifecycle_event)
	setInterval(() => process.ppid !== parent && stopRequestedAt === 0 && end('npm is gone'), PARENT_CHECK_MS).unref()

// After the signal handlers: a program that reads the banner may stop the gateway at once.
process.stdout.write(
	startupBanner({
		url: gateway.status.url('main'),
		legacy_url: gateway.status.url('legacy'),
		home,
		config: running.config,
		agent: await running.firstAgent().catch(() => undefined),
	}),
)
notify('READY=1', `STATUS=Listens at ${gateway.status.url('main')}`)
releaseStartMemory()
if (stopWaiting.signal.aborted) {
	stopRequestedAt = 0
	end('a signal arrived during the takeover')
}
