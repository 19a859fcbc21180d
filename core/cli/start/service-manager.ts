import { execFile } from 'node:child_process'

/** systemd-notify waits until systemd has read the message. */
const LIMIT_MS = 10_000

/**
 * Returns a function that reports the gateway's state to systemd, in lines such as `READY=1`. It does nothing unless systemd sets
 * NOTIFY_SOCKET, as for `Type=notify` (sd_notify(3)). Node has no Unix datagram sockets, so the program systemd-notify sends the
 * lines, in the order of the calls. Since systemd did not start that process, the unit needs `NotifyAccess=all`. MAINPID is not
 * sent: systemd already has the main process, also if that is the launcher.
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
