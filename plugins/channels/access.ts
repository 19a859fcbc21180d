/** Who may name what: a secret that is sent out, and the server that it is sent to, take more than the right to add a channel. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Secret } from '../vault/contract.ts'
import type { Adapter } from './adapters.ts'
import type { ChannelSettings, CommonConfig } from './contract.ts'

/** What a channel names that gives power. */
export interface Named {
	bot_token_ref: string
	config: Record<string, unknown>
}

/** Which keys of `config` it leaves to everybody, beside those of every channel. */
type Openness = Pick<Adapter, 'unguarded'>

/** Keys that every channel knows, and that say nothing of where it connects. */
const COMMON: ReadonlySet<string> = new Set(['agent_id', 'answer', 'allowed_senders'] satisfies (keyof CommonConfig)[])

/** What a secret must be labelled with, for callers without the scope `*`. */
const LABEL = 'channel'
/** Characters of a key. */
const SHOWN = 64

/** May this key of `config` be set without the scope `*`, whatever its value? Without an adapter nobody knows what it does. */
export function isUnguarded(key: string, adapter: Openness | undefined): boolean {
	return COMMON.has(key) || adapter?.unguarded.has(key) === true
}

/**
 * Throws `forbidden` where one who may not name anything names a secret that is not for channels, a server that the
 * operator did not list, or what an adapter might take for one. Asked again before each connection, since labels, settings
 * and adapters change.
 */
export async function checkPowers(
	{ bot_token_ref, config: { api_root, ...config } }: Named,
	adapter: Openness | undefined,
	secrets: readonly Secret[],
	{ allowed_api_roots }: Pick<ChannelSettings, 'allowed_api_roots'>,
): Promise<void> {
	const guarded = Object.keys(config).find((key) => !isUnguarded(key, adapter))
	if (guarded !== undefined)
		throw new Fault(
			'forbidden',
			`config.${guarded.slice(0, SHOWN)} takes the scope "*", since the plugin of the channel does not call it unguarded`,
		)
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
