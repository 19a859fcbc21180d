import type { LentThreads } from '../../core/runs/run-pool.ts'
import type { GatewayStatus, Health, HealthCheck } from '../../core/status.ts'

/**
 * The gateway's health. `detailed`: with the causes, which may contain names of files, settings and plugins. Without it, the
 * checks have fixed messages.
 *
 * Only a gateway that starts or drains is not ready. A gateway that refuses writes or a new configuration is `degraded`: it serves
 * other requests, and removing it from a load balancer would not help.
 */
export function healthOf(gateway: GatewayStatus, detailed: boolean): Health {
	const state = gateway.state()
	const checks: HealthCheck[] = [
		gatewayCheck(state, gateway.uncaughtErrors()),
		storeCheck(gateway, detailed),
		configCheck(gateway.configError(), detailed),
		pluginsCheck(gateway, detailed),
		// A waiting gateway replaces this check with its own (plugins/cluster/forwarding/probes.ts).
		...(gateway.storeCluster() ? [{ name: 'role', ok: true, message: 'working' }] : []),
		...threadsCheck(gateway.lentThreads()),
	]
	const working = checks.every((check) => check.ok) ? 'ok' : 'degraded'
	return {
		status: state === 'ready' ? working : state,
		version: gateway.version,
		generation: gateway.generation(),
		uptime_s: Math.max(0, Math.floor((Date.now() - Date.parse(gateway.started_at)) / 1000)),
		checks,
	}
}

/** Replaces the cause for callers that may not see it. */
const HIDDEN_CAUSE = ' (a token with agents:read shows why)'

/** One line for each check, then the status. For people and probes. */
export function linesOf({ status, checks }: Health): string {
	// Further lines of a message, such as a list of configuration errors, must not look like checks.
	const lines = checks.map(({ name, ok, message }) => `[${ok ? '+' : '-'}]${name} ${message.replaceAll('\n', '\n   ')}`)
	return [...lines, status, ''].join('\n')
}

export function isReady({ status }: Health): boolean {
	return status === 'ok' || status === 'degraded'
}

function gatewayCheck(state: string, uncaught: number): HealthCheck {
	const errors = uncaught > 0 ? `, uncaught errors of its own: ${uncaught} (see the log)` : ''
	return { name: 'gateway', ok: state === 'ready' && uncaught === 0, message: state + errors }
}

function storeCheck(gateway: GatewayStatus, detailed: boolean): HealthCheck {
	const trouble = gateway.storeTrouble()
	const cluster = detailed ? gateway.storeCluster() : null
	if (trouble === null) {
		const where = cluster && `${cluster.title} at ${cluster.servers.join(', ')}, leader ${cluster.leader ?? 'unknown'}`
		const space = detailed ? gateway.storeSpace() : null
		const size = space && `${mebibytes(space.bytes)} in use, ${mebibytes(space.free_bytes)} free on its disk`
		return { name: 'store', ok: true, message: ['ok', where ?? size].filter(Boolean).join(': ') }
	}
	return { name: 'store', ok: false, message: `refuses writes${detailed ? `: ${trouble}` : HIDDEN_CAUSE}` }
}

function mebibytes(bytes: number): string {
	return `${Math.round(bytes / 1024 ** 2).toLocaleString('en-US')} MiB`
}

/** No check without a cluster. */
function threadsCheck(lent: readonly LentThreads[] | null): HealthCheck[] {
	if (!lent) return []
	const sum = (of: 'threads' | 'runs'): number => lent.reduce((total, lender) => total + lender[of], 0)
	const runs = sum('runs')
	const [who, execute] = lent.length === 1 ? ['another gateway', 'executes'] : [`${lent.length} others`, 'execute']
	const others = ` and ${sum('threads')} lent by ${who}, which now ${execute} ${runs === 1 ? '1 run' : `${runs || 'no'} runs`}`
	const message = `those of the working gateway${lent.length > 0 ? others : ''}`
	return [{ name: 'threads', ok: true, message }]
}

function configCheck(error: string | null, detailed: boolean): HealthCheck {
	if (error === null) return { name: 'config', ok: true, message: 'in force' }
	const refused = 'the last change is refused, the last good configuration stays in force'
	return { name: 'config', ok: false, message: `${refused}${detailed ? `: ${error}` : HIDDEN_CAUSE}` }
}

function pluginsCheck(gateway: GatewayStatus, detailed: boolean): HealthCheck {
	const plugins = gateway.plugins()
	const bad = plugins.filter((plugin) => plugin.last_error !== null).map((plugin) => plugin.name)
	const running = plugins.filter((plugin) => plugin.state !== 'failed').length
	const which = detailed
		? `${bad.join(', ')} (svc plugins, or GET /v1/plugins, shows why)`
		: `${bad.length}${HIDDEN_CAUSE}`
	return {
		name: 'plugins',
		ok: bad.length === 0,
		message: `${running} running${bad.length > 0 ? `, problems with ${which}` : ''}`,
	}
}
