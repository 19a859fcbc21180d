/** The record of a reply while it is being sent. Written only if no other writer has changed it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isFault } from '../../../core/errors.ts'
import type { Context } from '../../../core/plugin.ts'
import { agentScope } from '../../../core/store/agent-scope.ts'
import type { Op, Rev } from '../../../core/store/ports.ts'
import { keys } from './records.ts'
import type { Reply, SentMessage } from './records.ts'

export type OpenReply = NonNullable<Awaited<ReturnType<typeof openReply>>>

/** Further data for the same commit. */
interface AlsoStored {
	/** The text being sent. */
	text?: string | undefined
	/** Id of the newest message that was sent. */
	sent_id?: string | undefined
}

/** Delay before a write is retried while the disk is full. */
const FULL_MS = 500

/** The record was deleted or changed by another writer: nothing more is to be sent. */
export class Gone extends Error {}

/** Undefined if no reply is pending. */
export async function openReply(
	ctx: Pick<Context, 'store' | 'signal'>,
	{ agent_uid, channel_id, run_id }: Pick<Reply, 'agent_uid' | 'channel_id' | 'run_id'>,
) {
	const key = keys.reply(agent_uid, channel_id, run_id)
	const textKey = keys.text(agent_uid, channel_id, run_id)
	const entry = await ctx.store.get<Reply>(key)
	if (!entry) return undefined
	let { value } = entry
	let expect: Rev = entry.rev
	const write = async (next: Reply | undefined, ops: Op[]): Promise<void> => {
		for (;;) {
			try {
				const revs = await ctx.store.commit(agentScope(agent_uid), [{ key, value: next, expect }, ...ops])
				expect = revs[0] ?? expect
				return
			} catch (error) {
				if (isFault(error, 'conflict', 'not_found')) throw new Gone('the record no longer exists', { cause: error })
				// A full disk must not make the gateway forget what it has sent.
				if (!isFault(error, 'storage_full') || ctx.signal.aborted) throw error
				await sleep(FULL_MS, undefined, { ref: false })
			}
		}
	}
	const sentOp = ({ sent_id }: AlsoStored): Op[] => {
		const key = keys.sent(agent_uid, channel_id, value.chat.id)
		return sent_id === undefined ? [] : [{ key, value: { id: sent_id } satisfies SentMessage }]
	}
	return {
		get value() {
			return value
		},
		/** Throws `Gone` if the agent or the channel was deleted. */
		async change(change: Partial<Reply>, also: AlsoStored = {}): Promise<void> {
			const next = { ...value, ...change }
			const textOp = also.text === undefined ? [] : [{ key: textKey, value: { text: also.text } }]
			await write(next, [...textOp, ...sentOp(also)])
			value = next
		},
		async remove(also: Pick<AlsoStored, 'sent_id'> = {}): Promise<void> {
			await write(undefined, [{ key: textKey, value: undefined }, ...sentOp(also)])
		},
	}
}
