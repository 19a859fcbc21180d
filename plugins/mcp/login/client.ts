/** The gateway as a client of authorization servers: its addresses and its metadata. */
import type { GatewayStatus } from '../../../core/status.ts'

export const CALLBACK = '/v1/mcp/callback'
export const CLIENT_DOCUMENT = '/.well-known/svc-mcp-client.json'

type Addresses = Pick<GatewayStatus, 'publicUrl'>

/** The redirect address of logins: below `server.public_url`, else on this machine. */
export function redirectAddress(gateway: Addresses): string {
	return `${base(gateway)}${CALLBACK}`
}

/** The address of the client ID metadata document, which is also the client id; null without a public address over https. */
export function clientDocument(gateway: Addresses): string | null {
	const url = base(gateway)
	return url.startsWith('https://') ? `${url}${CLIENT_DOCUMENT}` : null
}

/** The metadata for a registration. Together with `client_id`, it is the client ID metadata document. */
export function clientMetadata(redirect: string) {
	return {
		client_name: 'Agent Gateway',
		redirect_uris: [redirect],
		grant_types: ['authorization_code', 'refresh_token'],
		response_types: ['code'],
		token_endpoint_auth_method: 'none',
	}
}

function base(gateway: Addresses): string {
	return gateway.publicUrl() ?? 'http://127.0.0.1'
}
