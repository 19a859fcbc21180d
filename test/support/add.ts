/** Adds agents, tokens and secrets through the API. Every function throws if the gateway refuses. */
import type { Answer, TestGateway } from './gateway.ts'

type Api = Pick<TestGateway, 'request'>

/** Returns the agent. `fields`: the persona and the config. */
export function addAgent(gateway: Api, name: string, fields: Record<string, unknown> = {}): Promise<Answer> {
	return post(gateway, '/v1/agents', { name, ...fields })
}

/** `by`: the token of the caller, for a gateway in token mode. `ttl`: the time of the expiry, as an ISO 8601 timestamp. */
export function addToken(
	gateway: Api,
	scopes: string[],
	{ by, ttl }: { by?: string; ttl?: string } = {},
): Promise<{ id: string; token: string }> {
	return post(gateway, '/v1/auth/tokens', { scopes, ...(ttl !== undefined && { ttl }) }, by)
}

/** Stores a secret, and grants it to an agent. `reveal`: whether the agent may read its value. */
export async function addSecret(
	gateway: Api,
	agent_id: string,
	name: string,
	value: string,
	{ reveal = false } = {},
): Promise<void> {
	const { id } = await post(gateway, '/v1/vault/secrets', { name, value })
	await post(gateway, '/v1/vault/grants', { agent_id, secret_id: id, reveal })
}

async function post(gateway: Api, path: string, body: object, token?: string): Promise<Answer> {
	const reply = await gateway.request('POST', path, { body, ...(token !== undefined && { token }) })
	if (reply.status !== 201) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
	return reply.body
}
