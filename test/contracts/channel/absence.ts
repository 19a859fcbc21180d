/** Checks that abilities denied by the flags of a suite are really absent: a check skipped by mistake would hide errors. */
import type { Ability } from '../channel.ts'
import { must, same } from './harness.ts'
import type { Check, Harness } from './harness.ts'

export const absenceCheck: Check = {
	name: 'has no ability that its flags deny',
	async run(harness) {
		const { abilities } = harness
		const denied = Object.keys(abilities).filter((name): name is Ability => abilities[name as Ability] === false)
		if (denied.length === 0) return
		const found = await partsOf(harness)
		for (const ability of denied) {
			must(ability in found, `a flag is one of ${Object.keys(found).join(', ')}, unlike ${ability}`)
			must(
				found[ability] === undefined,
				`\`abilities.${ability}\` is false, but the ability is present: remove the flag`,
			)
		}
		if (denied.includes('replies')) await repliesToNothing(harness)
	},
}

/** The part that shows each ability; undefined if it is absent. */
async function partsOf(harness: Harness): Promise<Record<Ability, unknown>> {
	const { adapter, platform } = harness
	const { next = {} } = platform
	const { connection } = await harness.connect()
	const group = await platform.chat('group')
	const chat = group ?? (await harness.chat())
	return {
		config: adapter.config,
		unguarded: adapter.unguarded,
		groups: group,
		replies: chat.reply,
		threads: chat.sayInThread,
		attachments: chat.attach,
		files: chat.attachFile ?? connection.load,
		repeats: chat.repeat,
		edits: connection.edit,
		drafts: connection.draft,
		typing: connection.typing ?? adapter.can.typing_ms,
		sends_files: connection.sendFile ?? adapter.can.files,
		find: connection.find,
		lost: next.lost,
		limited: next.limited,
		failed: next.failed,
		refused: next.refused,
		format: next.format,
		stalled: next.stalled,
		revoke: platform.revoke,
	}
}

/** The gateway sets `reply_to` nevertheless: the adapter must ignore it. */
async function repliesToNothing(harness: Harness): Promise<void> {
	const { connection } = await harness.connect()
	const chat = await harness.chat()
	await chat.say('a question')
	const { id: reply_to } = await harness.waitForMessage('a question')
	const { id } = await connection.send(harness.message(chat, 'an answer', { reply_to }))
	const shown = (await chat.shown()).find((one) => one.id === id)
	must(shown, 'an answer is sent even if there are no replies')
	same(shown.reply_to, undefined, 'without replies, an answer is not shown as a reply')
}
