/** Checks whether a server is suitable. Older servers accept the settings that this engine needs, and silently ignore them. */

const OLDEST = [2, 12] as const
/** Enough for a record of 8 MiB with its headers. */
const LEAST_PAYLOAD = 9 * 1024 * 1024

/** Why this server cannot be used, with what to change; null if it can. */
export function serverProblem(
	info: { version: string; jetstream?: boolean; max_payload: number; server_name?: string } | undefined,
): string | null {
	if (!info) return 'the server of the cluster did not identify itself'
	const name = info.server_name ?? 'the server'
	const [major = 0, minor = 0] = info.version.split('.').map(Number)
	if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
		return `${name} is nats-server ${info.version}, and ${OLDEST.join('.')} or newer is needed: upgrade it`
	if (info.jetstream !== true)
		return `${name} runs without JetStream: add "jetstream { store_dir: …, sync_interval: always }" to its configuration`
	if (info.max_payload < LEAST_PAYLOAD)
		return `${name} accepts messages of at most ${info.max_payload} bytes: set "max_payload: 16MB" in its configuration`
	return null
}
