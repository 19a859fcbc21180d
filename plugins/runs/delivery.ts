/** Where the results of runs go: what is stored when that is set up, and what is written with each run. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Deliver } from '../../core/runs/deliver.ts'
import type { Deliverer, Delivery, OpenDelivery, RunRecord, Runs } from './contract.ts'

type Deps = Pick<Context, 'extensions'>

/** As `Runs.delivery` and `Runs.changeDelivery`. */
export function deliveriesOf(ctx: Deps, find: Runs['find']): Pick<Runs, 'delivery' | 'changeDelivery'> {
	const checked = async (agent: AgentRef, delivery: Delivery): Promise<Delivery> => {
		const { deliver, origin } = delivery
		if (deliver === 'none') return delivery
		if (deliver === 'origin' && !origin)
			throw wrong('deliver: origin is for what is set up in a chat; give none, or a channel and a chat')
		const deliverer = delivererIn(ctx)
		if (!deliverer) throw wrong('nothing can be delivered to chats while the plugin "channels" is switched off')
		await deliverer.check(agent, delivery)
		return delivery
	}
	return {
		async delivery(agent, wanted, run_id) {
			const run = run_id === undefined ? undefined : await find(run_id)
			const origin = run && (await delivererIn(ctx)?.origin(run))
			// The default never refuses: whether the chat is still bound is checked when a run starts.
			if (wanted === undefined) return origin ? { deliver: 'origin', origin } : { deliver: 'none' }
			return checked(agent, { deliver: wanted, ...(origin && { origin }) })
		},
		changeDelivery: (agent, before, deliver: Deliver) => checked(agent, { ...before, deliver }),
	}
}

/** What is written with a run, and what follows. */
export async function openDelivery(
	ctx: Deps,
	agent: AgentRef,
	delivery: Delivery | undefined,
	conversation: string,
): Promise<OpenDelivery | undefined> {
	if (!delivery || delivery.deliver === 'none') return undefined
	const deliverer = delivererIn(ctx)
	if (deliverer) return deliverer.open(agent, delivery, conversation)
	const message = 'the plugin "channels" is switched off'
	const { channel = '', chat = '' } = typeof delivery.deliver === 'object' ? delivery.deliver : {}
	const failed = { code: 'unavailable', message, channel_id: channel, chat_id: chat }
	return { failed, ops: () => [], begun: async () => {} }
}

/** The run continues, whether or not anybody learns its result. */
export async function begunDelivery(
	{ log, emit }: Pick<Context, 'log' | 'emit'>,
	opened: OpenDelivery | undefined,
	run: RunRecord,
	isNew: boolean,
): Promise<void> {
	const { run_id, agent } = run
	try {
		if (opened?.failed && isNew)
			await emit({ event_type: 'delivery.failed', payload: { run_id, ...opened.failed } }, agent)
		await opened?.begun(run)
	} catch (error) {
		log.error({ err: error, run_id }, 'the delivery of a result could not be prepared; it begins at the next start')
	}
}

function delivererIn({ extensions }: Deps): Deliverer | undefined {
	return extensions('delivery')[0]?.value
}

function wrong(message: string): Fault {
	return new Fault('invalid_request', message, { errors: [{ path: 'deliver', message }] })
}
