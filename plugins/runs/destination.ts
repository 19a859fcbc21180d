/** Destinations of results: checks them when they are set up, and opens them when a run starts. */
import { invalidField } from '../shared/invalid-field.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Deliver, Destination, Destinations, OpenDestination, RunRecord, Runs } from './contract.ts'
import { findRun } from './records.ts'

type DestinationDeps = Pick<Context, 'extensions'>

/** As `Runs.destination` and `Runs.changeDestination`. */
export function destinationOf(
	ctx: DestinationDeps & Pick<Context, 'store'>,
): Pick<Runs, 'destination' | 'changeDestination'> {
	const checked = async (agent: AgentRef, destination: Destination): Promise<Destination> => {
		const { deliver, origin } = destination
		if (deliver === 'none') return destination
		if (deliver === 'origin' && !origin)
			throw invalidField('deliver', 'deliver: origin is only valid in a chat; use none, or give a channel and a chat')
		const destinations = destinationsIn(ctx)
		if (!destinations)
			throw invalidField('deliver', 'nothing can be delivered to chats while the plugin "channels" is switched off')
		return destinations.check(agent, destination)
	}
	return {
		async destination(agent, wanted, run_id) {
			const run = run_id === undefined ? undefined : await findRun(ctx.store, run_id)
			const origin = run && (await destinationsIn(ctx)?.origin(run))
			// The default is never refused: each run checks when it starts whether the chat is still bound.
			if (wanted === undefined) return origin ? { deliver: 'origin', origin } : { deliver: 'none' }
			return checked(agent, { deliver: wanted, ...(origin && { origin }) })
		},
		changeDestination: (agent, before, deliver: Deliver) => checked(agent, { ...before, deliver }),
	}
}

/** Returns what is written with a run for its destination. Undefined if its result is not delivered. */
export async function openDestination(
	ctx: DestinationDeps,
	agent: AgentRef,
	destination: Destination | undefined,
	conversation: string,
): Promise<OpenDestination | undefined> {
	if (!destination || destination.deliver === 'none') return undefined
	const destinations = destinationsIn(ctx)
	if (destinations) return destinations.open(agent, destination, conversation)
	const { channel = null, chat = null } = typeof destination.deliver === 'object' ? destination.deliver : {}
	const failed = { code: 'unavailable', message: 'the plugin "channels" is switched off' }
	return { channel_id: channel, chat_id: chat, failed, ops: () => [] }
}

/** Tells the destination that the run is durable. Never rejects: the run continues even if its result cannot be delivered. */
export async function begunDestination(
	ctx: DestinationDeps & Pick<Context, 'log' | 'emit'>,
	{ failed, channel_id, chat_id }: OpenDestination,
	run: RunRecord,
	isNew: boolean,
): Promise<void> {
	const { run_id, agent } = run
	try {
		if (!failed && channel_id !== null) await destinationsIn(ctx)?.begun(run, channel_id)
		else if (failed && isNew)
			await ctx.emit({ event_type: 'message.undelivered', payload: { run_id, channel_id, chat_id, ...failed } }, agent)
	} catch (error) {
		ctx.log.error({ err: error, run_id }, 'the result of a run will be delivered only after the next start')
	}
}

function destinationsIn({ extensions }: DestinationDeps): Destinations | undefined {
	return extensions('destination')[0]?.value
}
