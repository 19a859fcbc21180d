/** Opens the target of a connection: starts a process, or prepares requests to an address. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { checkCommand, policyOf } from './access.ts'
import type { McpSettings } from './contract.ts'
import type { Target } from './session.ts'
import { environmentOf } from './environment.ts'
import { boundedFetch } from './http.ts'
import type { Login } from './login/login.ts'
import type { Processes } from './processes.ts'
import type { McpRecord } from './records.ts'
import type { Tail } from './tail.ts'
import { openValues } from './values.ts'

export interface TargetServices extends Pick<Context<McpSettings>, 'env' | 'emit' | 'find' | 'use' | 'config'> {
	processes: Processes
	/** Absent: the server gets no tokens. */
	login?: Pick<Login, 'authorize'> | undefined
}

export interface Opened {
	target: Target
	/** The values of `env` or `headers` that the server gets, by name; and `url` if it contains a secret. */
	values: Record<string, string>
	/** Releases everything that closing the session does not. */
	release(): Promise<void>
}

/** Throws `forbidden` if the operator revoked the permission, `vault_denied`, `mcp_failed` (the program does not start). */
export async function openTarget(
	record: McpRecord,
	agent: AgentRef,
	services: TargetServices,
	stderrTail: Tail,
	signal: AbortSignal,
): Promise<Opened> {
	const { command, args = [], transport, trusted } = record
	if (transport === 'stdio' && !trusted) {
		checkCommand({ command: command ?? '', args, variables: Object.keys(record.names) }, services.config)
	}
	const { values, url } = await openValues(record, agent, services)
	signal.throwIfAborted()
	if (transport === 'stdio') {
		const env = environmentOf(services.env, values)
		const process = await services.processes.start({ command: command ?? '', args, env })
		return { target: { kind: 'stdio', process, stderrTail }, values, release: () => process.stop() }
	}
	if (!url) throw new Fault('invalid_request', 'the address of the server is not a URL')
	const { fetcherFor } = await import('../../core/fetch/guarded-fetch.ts') // large, and not needed without a server
	const fetcher = fetcherFor(url, {
		policy: policyOf(trusted, services.config),
		// Event streams do not end. Each message and each call has its own limit.
		max_bytes: Infinity,
		timeout_ms: Infinity,
		owner: agent.uid,
	})
	const fetch = boundedFetch(services.login?.authorize(fetcher) ?? fetcher, values)
	return {
		target: { kind: transport, url, fetch },
		values: { ...values, ...(url.href !== URL.parse(record.url ?? '')?.href && { url: url.href }) },
		release: async () => fetcher[Symbol.asyncDispose](),
	}
}
