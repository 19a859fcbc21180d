/** What the flags of a suite deny is really absent: a check that is left out by mistake would hide what is wrong. */
import type { Ability } from '../channel.ts'
import { must, same } from './desk.ts'
import type { Check, Desk } from './desk.ts'

export const absenceCheck: Check = {
	name: 'has nothing of what its flags deny',
	async run(desk) {
		const { abilities } = desk
		const denied = Object.keys(abilities).filter((name): name is Ability => abilities[name as Ability] === false)
		if (denied.length === 0) return
		const found = await partsOf(desk)
		for (const ability of denied) {
			must(ability in found, `a flag is one of ${Object.keys(found).join(', ')}, unlike ${ability}`)
			must(found[ability] === undefined, `\`abilities.${ability}\` is false, and it is there: remove the flag`)
		}
		if (denied.includes('replies')) await repliesToNothing(desk)
	},
}

/** What stands for each ability; undefined where it is absent. */
async function partsOf(desk: Desk): Promise<Record<Ability, unknown>> {
	const { adapter, platform } = desk
	const { next = {} } = platform
	const { connection } = await desk.connect()
	const group = await platform.chat('group')
	const chat = group ?? (await desk.chat())
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

/** The gateway names the message that it answers all the same: the answer goes out without that. */
async function repliesToNothing(desk: Desk): Promise<void> {
	const { connection } = await desk.connect()
	const chat = await desk.chat()
	await chat.say('a question')
	const { id: reply_to } = await desk.heard('a question')
	const { id } = await connection.send(desk.message(chat, 'an answer', { reply_to }))
	const shown = (await chat.shown()).find((one) => one.id === id)
	must(shown, 'an answer is sent even if there are no replies')
	same(shown.reply_to, undefined, 'without replies, an answer is not shown as a reply')
}
