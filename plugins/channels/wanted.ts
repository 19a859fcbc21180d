/** What a channel needs to connect: its adapter, its checked config and its token, or the reason why it cannot connect. */
import { isFault, messageOf } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { Secret } from '../vault/contract.ts'
import { checkPowers } from './access.ts'
import type { Adapter, Adapters } from './adapters.ts'
import type { ChannelSettings } from './contract.ts'
import type { ChannelRecord } from './directory.ts'

export type WantedConnection = { adapter: Adapter; config: Record<string, unknown> } & (
	| { token: string }
	/** `passing`: it may end soon, and no event reports that. */
	| { blocked: string; passing: boolean }
)

/** What a connection was made from. */
export interface ConnectionSettings {
	adapter: Adapter
	token: string
	/** The config as JSON. */
	settings: string
}

/** Problems that only a change can fix, which an event reports. */
const lasting = ['not_found', 'forbidden', 'vault_locked', 'store_damaged'] as const

/** For one check of all channels; secrets are listed once. Returns undefined if no running plugin has the type. */
export function wantedIn(
	{ use, config }: Pick<Context<ChannelSettings>, 'use' | 'config'>,
	adapters: Adapters,
	madeOf: (channel_id: string) => ConnectionSettings | undefined,
): (record: ChannelRecord) => Promise<WantedConnection | undefined> {
	let listing: Promise<Secret[]> | undefined
	return async (record) => {
		const adapter = adapters.all.get(record.type)
		if (!adapter) return undefined
		const checked = adapter.check(record.config)
		if ('errors' in checked) {
			const blocked = checked.errors.map(({ message }) => message).join('; ')
			return { adapter, config: record.config, blocked, passing: false }
		}
		const about = { adapter, config: checked.config }
		try {
			const vault = use('vault')
			if (!record.trusted) await checkPowers(record, adapter, await (listing ??= vault.secrets.list()), config)
			return { ...about, token: await vault.open(record.bot_token_ref) }
		} catch (error) {
			const made = madeOf(record.id)
			// A temporarily unavailable vault is no reason to close a working connection.
			if (made?.adapter === adapter && isFault(error, 'vault_locked', 'unavailable'))
				return { ...about, token: made.token }
			return { ...about, blocked: messageOf(error), passing: !isFault(error, ...lasting) }
		}
	}
}
