/** The gateway as a client of authorization servers: its addresses, and the metadata that it registers. */
import type { GatewayStatus } from '../../../core/status.ts'

export const CALLBACK = '/v1/mcp/callback'
export const CLIENT_DOCUMENT = '/.well-known/svc-mcp-client.json'

type Reached = Pick<GatewayStatus, 'publicUrl'>

/** Where an authorization server sends a browser after a login: below `server.public_url`, else at this machine. */
export function redirectAddress(gateway: Reached): string {
	return `${base(gateway)}${CALLBACK}`
}

/** The address of our client ID metadata document, which is the client's id; null without a public address over https. */
export function clientDocument(gateway: Reached): string | null {
	const at = base(gateway)
	return at.startsWith('https://') ? `${at}${CLIENT_DOCUMENT}` : null
}

/** For a registration; with `client_id`, the client ID metadata document. */
export function clientMetadata(redirect: string) {
	return {
		client_name: 'Agent Gateway',
		redirect_uris: [redirect],
		grant_types: ['authorization_code', 'refresh_token'],
		response_types: ['code'],
		token_endpoint_auth_method: 'none',
	}
}

function base(gateway: Reached): string {
	return gateway.publicUrl() ?? 'http://127.0.0.1'
}
