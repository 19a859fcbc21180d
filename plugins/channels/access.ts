/** Who may name what: a secret that is sent out, and the server that it is sent to, take more than the right to add a channel. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Secret } from '../vault/contract.ts'
import type { ChannelSettings } from './contract.ts'

/** What a channel names that gives power. */
export interface Named {
	bot_token_ref: string
	config: Record<string, unknown>
}

/** What a secret must be labelled with, for callers without the scope `*`. */
const LABEL = 'channel'

/**
 * Throws `forbidden` where one who may not name anything names a secret that is not for channels, or a server that the
 * operator did not list. Asked again before each connection, since labels and settings change.
 */
export async function checkPowers(
	{ bot_token_ref, config: { api_root } }: Named,
	secrets: readonly Secret[],
	{ allowed_api_roots }: Pick<ChannelSettings, 'allowed_api_roots'>,
): Promise<void> {
	const secret = secrets.find(({ id }) => id === bot_token_ref) ?? secrets.find(({ name }) => name === bot_token_ref)
	if (secret && secret.policy_label !== LABEL)
		throw new Fault(
			'forbidden',
			`the secret "${bot_token_ref}" has no policy_label "${LABEL}"; naming it takes the scope "*"`,
		)
	if (typeof api_root !== 'string') return
	const { checkUrl, parseUrl } = await import('../../core/reach.ts')
	try {
		const reach = {
			protocols: ['http:', 'https:'],
			hosts: allowed_api_roots,
			private_hosts: allowed_api_roots,
		} as const
		checkUrl(parseUrl(api_root), reach, true)
	} catch (error) {
		if (!isFault(error, 'address_refused')) throw error
		throw new Fault(
			'forbidden',
			'config.api_root takes the scope "*", or its host in channels.allowed_api_roots of gateway.yaml',
			{ cause: error },
		)
	}
}
