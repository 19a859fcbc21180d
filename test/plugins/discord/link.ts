import { connect } from '../../../plugins/discord/connection.ts'
import type { DiscordConfig } from '../../../plugins/discord/config.ts'
import type { Connection } from '../../../plugins/channels/adapter.ts'
import { testLink } from '../../support/channel-link.ts'
import type { TestLink } from '../../support/channel-link.ts'
import type { DiscordServer } from '../../support/discord.ts'

type DiscordLink = TestLink<DiscordConfig>

export function linkTo({ url, token }: Pick<DiscordServer, 'url' | 'token'>): DiscordLink {
	return testLink(token, { api_root: url })
}

export async function open(
	t: { teardown(end: () => unknown): void },
	server: DiscordServer,
	fields: Partial<DiscordLink> = {},
): Promise<{ link: DiscordLink; connection: Connection }> {
	const link = Object.assign(linkTo(server), fields)
	const connection = await connect(link)
	t.teardown(() => connection.close())
	return { link, connection }
}
