import { execFile } from 'node:child_process'

/** systemd-notify waits until systemd has read the message. */
const LIMIT_MS = 10_000

/**
 * Tells systemd how the gateway is, where systemd asks for it by NOTIFY_SOCKET (sd_notify(3)), as `Type=notify` does: lines such as
 * `READY=1`. Node has no datagram sockets of the file system, so the program systemd-notify sends it, in the order of the calls. As that is
 * another process than the one that systemd started, the unit needs `NotifyAccess=all`. It names no MAINPID: systemd knows the
 * process, also where that is the launcher.
 */
export function serviceManager(
	env: NodeJS.ProcessEnv,
	failed: (message: string) => void,
): (...lines: string[]) => void {
	if (!env.NOTIFY_SOCKET) return () => {}
	let last = Promise.resolve()
	return (...lines) => {
		last = last.then(() => send(env, lines)).catch((error: unknown) => failed(messageFor(error)))
	}
}

function send(env: NodeJS.ProcessEnv, lines: readonly string[]): Promise<void> {
	const { PATH, NOTIFY_SOCKET } = env
	return new Promise((resolve, reject) => {
		execFile('systemd-notify', lines, { env: { PATH, NOTIFY_SOCKET }, timeout: LIMIT_MS }, (error) =>
			error ? reject(error) : resolve(),
		)
	})
}

function messageFor(error: unknown): string {
	const why = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such program in PATH' : String(error)
	return `systemd-notify failed: ${why}. systemd does not learn the state of the gateway; use Type=exec in its unit, or install systemd-notify`
}
