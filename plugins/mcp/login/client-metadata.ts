/** What authorization servers are told of the gateway when it registers; with `client_id`, its client ID metadata document. */
export function clientMetadata(redirect: string) {
	return {
		client_name: 'Agent Gateway',
		redirect_uris: [redirect],
		grant_types: ['authorization_code', 'refresh_token'],
		response_types: ['code'],
		token_endpoint_auth_method: 'none',
	}
}
