/** The requests of a login. Their addresses come from the server's documents, so they have the limits of addresses from outside. */
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { isFault } from '../../../core/errors.ts'
import type { AgentRef } from '../../../core/plugin.ts'
import { policyOf } from '../access.ts'
import type { McpSettings } from '../contract.ts'

/** Limit of one response. Tokens and metadata have a few KiB. */
const MAX_BYTES = 64 * 1024
const TIMEOUT_MS = 10_000

/**
 * Allows public addresses over https. For a server at a private address, also allows http, and the private addresses that the
 * server's connections may reach. Throws as `guardedFetch`. Returns redirects to the caller.
 */
export function loginFetch(server: URL, trusted: boolean, agent: AgentRef, config: McpSettings): FetchLike {
	let isPrivate: Promise<boolean> | undefined
	return async (url, init = {}) => {
		const { guardedFetch } = await import('../../../core/fetch/guarded-fetch.ts') // large, and not needed without a server
		const policy = (await (isPrivate ??= isPrivateAddress(server)))
			? policyOf(trusted, config)
			: { ...policyOf(false, config), protocols: ['https:'] as const }
		const { method, headers, body, signal } = init
		return guardedFetch(
			url,
			{ method, headers, body, signal, redirect: 'manual' },
			{ policy, max_bytes: MAX_BYTES, timeout_ms: TIMEOUT_MS, owner: agent.uid },
		)
	}
}

/** Whether an address leads to this machine or its network. A host name that does not resolve now counts as public. */
async function isPrivateAddress(server: URL): Promise<boolean> {
	const { checkAddress } = await import('../../../core/fetch/guarded-fetch.ts')
	try {
		await checkAddress(server, { policy: { protocols: ['http:', 'https:'] }, timeout_ms: TIMEOUT_MS })
		return false
	} catch (error) {
		if (isFault(error, 'address_refused')) return true
		throw error
	}
}
