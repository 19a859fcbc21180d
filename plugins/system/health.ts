import type { GatewayStatus } from '../../core/status.ts'
import type { Check, Health } from './contract.ts'

/**
 * How the gateway is. Everybody may read it, so it says no more of a third party's plugin than that it fails.
 *
 * Only a gateway that starts or drains is not ready. One that refuses writes or a new configuration still serves as well
 * as it can, and taking it out of a load balancer would help nobody: that is `degraded`.
 */
export function healthOf(gateway: GatewayStatus): Health {
	const state = gateway.state()
	const checks: Check[] = [
		{ name: 'gateway', ok: state === 'ready', message: state },
		storeCheck(gateway.storeTrouble()),
		configCheck(gateway.configError()),
		pluginsCheck(gateway),
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

/** For people and probes: one line for each check, the verdict last. */
export function linesOf({ status, checks }: Health): string {
	// A message of several lines, such as a configuration's list of errors, must not look like further checks.
	const lines = checks.map(({ name, ok, message }) => `[${ok ? '+' : '-'}]${name} ${message.replaceAll('\n', '\n   ')}`)
	return [...lines, status, ''].join('\n')
}

export function isReady({ status }: Health): boolean {
	return status === 'ok' || status === 'degraded'
}

function storeCheck(trouble: string | null): Check {
	return { name: 'store', ok: trouble === null, message: trouble === null ? 'ok' : `refuses writes: ${trouble}` }
}

function configCheck(error: string | null): Check {
	const message = error === null ? 'in force' : `the last change is refused, what was in force stays so: ${error}`
	return { name: 'config', ok: error === null, message }
}

function pluginsCheck(gateway: GatewayStatus): Check {
	const plugins = gateway.plugins()
	const bad = plugins.filter((plugin) => plugin.last_error !== null).map((plugin) => plugin.name)
	const running = plugins.filter((plugin) => plugin.state === 'running').length
	const trouble = bad.length > 0 ? `, trouble with ${bad.join(', ')} (GET /v1/plugins says why)` : ''
	return { name: 'plugins', ok: bad.length === 0, message: `${running} running${trouble}` }
}
