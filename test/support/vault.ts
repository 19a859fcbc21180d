/** Stores and grants secrets over HTTP, as an operator does. */
import type { TestGateway } from './gateway.ts'

/** Stores a new secret, and grants it to an agent. */
export async function grantSecret(
	{ request }: Pick<TestGateway, 'request'>,
	agent_id: string,
	secret: { name: string; value: string },
	{ reveal = false } = {},
): Promise<void> {
	const stored = await request('POST', '/v1/vault/secrets', { body: secret })
	const body = { agent_id, secret_id: stored.body.id, reveal }
	const granted = await request('POST', '/v1/vault/grants', { body })
	if (granted.status !== 201) throw new Error(`not granted: ${JSON.stringify([stored.body, granted.body])}`)
}
