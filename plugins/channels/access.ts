/** Checks which secrets and servers a caller may name. The scope `channels:write` is not enough, since the secret is sent to the server. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Secret } from '../vault/contract.ts'
import type { Adapter } from './adapters.ts'
import type { ChannelSettings, CommonConfig } from './contract.ts'
import type { ChannelRecord } from './directory.ts'
import { webSchemes } from './schemas.ts'

/** The `config` keys that every caller may set, besides the common ones, and the accepted schemes of addresses. */
type AccessRules = Pick<Adapter, 'unguarded' | 'schemes'>

/** The host and port with https, to match the operator's list. The port is required, since the scheme's default port is unknown here. */
function asWeb(address: string): URL {
	const { host, port } = URL.parse(address) ?? {}
	const url = port ? URL.parse(`https://${host}`) : null
	if (!url) throw new Fault('address_refused', 'the address needs a host and a port')
	return url
}

/** Keys that every channel has and that do not affect where it connects. */
const COMMON: ReadonlySet<string> = new Set([
	'agent_id',
	'answer',
	'allowed_senders',
	'progress',
	'during_run',
] satisfies (keyof CommonConfig)[])

/** The label that a secret needs, for callers without the scope `*`. */
const LABEL = 'channel'
/** Characters of a key in an error. */
const KEY_SHOWN = 64

/** Whether every caller may set this key of `config` to any value. Without an adapter only the common keys, since the effect of others is unknown. */
export function isUnguarded(key: string, adapter: AccessRules | undefined): boolean {
	return COMMON.has(key) || adapter?.unguarded.has(key) === true
}

/**
 * The rules for callers without the scope `*`. Throws `forbidden` for a secret without the label `channel`, a server that the
 * operator did not list, or a key that might be used as an address. Checked again before each connection, since labels,
 * settings and adapters change.
 */
export async function checkAccess(
	{ bot_token_ref, config: { api_root, ...config } }: Pick<ChannelRecord, 'bot_token_ref' | 'config'>,
	adapter: AccessRules | undefined,
	secrets: readonly Secret[],
	{ allowed_api_roots }: Pick<ChannelSettings, 'allowed_api_roots'>,
): Promise<void> {
	const guarded = Object.keys(config).find((key) => !isUnguarded(key, adapter))
	if (guarded !== undefined)
		throw new Fault(
			'forbidden',
			`config.${guarded.slice(0, KEY_SHOWN)} requires the scope "*", because the plugin of the channel does not declare it as unguarded`,
		)
	const secret = secrets.find(({ id }) => id === bot_token_ref) ?? secrets.find(({ name }) => name === bot_token_ref)
	if (secret && secret.policy_label !== LABEL)
		throw new Fault(
			'forbidden',
			`the secret "${bot_token_ref}" has no policy_label "${LABEL}"; using it requires the scope "*"`,
		)
	if (typeof api_root !== 'string') return
	const { checkUrl, parseUrl } = await import('../../core/fetch/policy.ts')
	const [scheme = ''] = api_root.split(':', 1)
	try {
		const reach = {
			protocols: ['http:', 'https:'],
			hosts: allowed_api_roots,
			private_hosts: allowed_api_roots,
		} as const
		if (webSchemes.includes(scheme.toLowerCase())) checkUrl(parseUrl(api_root), reach, true)
		else if (adapter?.schemes.includes(scheme.toLowerCase())) checkUrl(asWeb(api_root), reach, true)
		else throw new Fault('address_refused', 'the plugin of the channel does not accept this scheme')
	} catch (error) {
		if (!isFault(error, 'address_refused')) throw error
		throw new Fault(
			'forbidden',
			'config.api_root requires the scope "*", or its host in channels.allowed_api_roots of gateway.yaml',
			{ cause: error },
		)
	}
}
