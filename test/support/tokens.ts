/** Creates tokens over HTTP, as a local caller. */
import type { TestGateway } from './gateway.ts'

/** Returns the text of a new token that does not expire. */
export async function tokenWith({ request }: Pick<TestGateway, 'request'>, ...scopes: string[]): Promise<string> {
	const { status, body } = await request('POST', '/v1/auth/tokens', { body: { scopes } })
	if (status !== 201) throw new Error(`no token: ${status} ${JSON.stringify(body)}`)
	return body.token
}
