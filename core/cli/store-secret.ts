import { CliError, path } from './contract.ts'
import type { Api } from './contract.ts'

export interface StoredSecret {
	id: string
	name: string
	created_at: string
	policy_label?: string
	damaged?: true
	warning?: string
}

/** Creates a secret, or changes the value of an existing one. Needs only `vault:write`, not the right to list secrets. */
export async function storeSecret(
	api: Pick<Api, 'request'>,
	name: string,
	value: string,
	label?: string,
): Promise<{ secret: StoredSecret; made: boolean }> {
	const body = { value, policy_label: label }
	try {
		return { secret: await api.request<StoredSecret>('POST', '/v1/vault/secrets', { name, ...body }), made: true }
	} catch (error) {
		if (!(error instanceof CliError) || error.code !== 'already_exists') throw error
		return { secret: await api.request<StoredSecret>('PUT', path`/v1/vault/secrets/${name}`, body), made: false }
	}
}
