import { definePlugin } from '../../core/plugin.ts'
import type {} from '../vault/contract.ts'
import { bindingsOf } from './bindings.ts'
import { channelsOf } from './channels.ts'
import { openConnections } from './connections.ts'
import type { ChannelSettings } from './contract.ts'
import { decisionsIn } from './decisions.ts'
import { directoryOf } from './directory.ts'
import { keepHouse } from './house.ts'
import { pairingOf } from './pairing.ts'
import { openDialogue } from './dialogue.ts'
import type { Dialogue } from './parts.ts'
import { registryOf } from './registry.ts'
import { routes } from './routes.ts'

/** Channels: chat platforms by which people talk to agents. */
export default definePlugin<ChannelSettings>({
	name: 'channels',
	needs: ['auth', 'agents', 'runs', 'vault'],
	// Two connections with one token take each other's messages.
	exclusive: true,
	config: (joi) =>
		joi.object<ChannelSettings>({
			allowed_api_roots: joi.array().items(joi.string()).required(),
			max_channels: joi.number().required(),
			max_bindings: joi.number().required(),
			retention_days: joi.number().required(),
			retry_max_s: joi.number().required(),
		}),
	start(ctx) {
		const decide = decisionsIn(ctx.store)
		const directory = directoryOf(ctx.store, decide)
		const bindings = bindingsOf(ctx, decide)
		const pairing = pairingOf(ctx, directory, bindings, decide)
		const connections = openConnections(ctx, directory, () => dialogue)
		const dialogue: Dialogue = openDialogue(ctx, registryOf(connections, bindings, pairing))
		// Released before the dialogue: what comes in is taken to the end.
		ctx.own(connections, 'connections to chat platforms')
		const parts = { directory, bindings, pairing, connections, dialogue }
		const channels = channelsOf(ctx, parts)
		keepHouse(ctx, channels, parts)

		ctx.onGeneration(() => void connections.look())
		// By events, so that it does not matter through which generation a channel came or went.
		ctx.on('channel.created', () => void connections.look())
		ctx.on('channel.updated', () => void connections.look())
		const names = (secret: { id: string; name: string }) => (one: { bot_token_ref: string }) =>
			one.bot_token_ref === secret.id || one.bot_token_ref === secret.name
		const stop = ctx.use('vault').onChanged((secret) => void connections.look(names(secret)))
		ctx.defer(stop, 'secrets that change')
		return channels
	},
	http: (server, ctx) => routes(server, ctx),
})
