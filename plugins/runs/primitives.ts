import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context } from '../../core/plugin.ts'
import { messagesOf } from './conversation.ts'
import { readNotes, writeNote } from './notes.ts'

const RECENT_TURNS = 10

/** `ask`, `memory.stm_read`, `memory.stm_write`. */
export function addPrimitives(ctx: Pick<Context, 'primitive' | 'extend' | 'store'>): void {
	ctx.extend('prompt', {
		stable: () =>
			'Notes for this conversation: memory.stm_write keeps them, memory.stm_read shows them. Call ask only if you cannot continue without an answer.',
	})
	ctx.primitive({
		name: 'ask',
		description:
			'Asks the person behind this conversation a question and waits for the answer. Use it when you cannot continue without them.',
		parameters: Joi.object({
			question: Joi.string().min(1).max(4_000).required().description('What you want to know.'),
			options: Joi.array()
				.items(Joi.string().min(1).max(200))
				.min(1)
				.max(20)
				.description('Answers to choose from, if there are only a few.'),
		}),
		run: (args, call) => call.pause(args as unknown as { question: string; options?: string[] }),
	})
	ctx.primitive({
		name: 'memory.stm_read',
		description:
			'Reads the short-term memory of this conversation: your notes, and its latest messages. It is gone when the conversation is reset.',
		parameters: Joi.object({ key: Joi.string().min(1).max(128).description('One note only.') }),
		async run({ key }, { agent, conversation }) {
			const notes = await readNotes(ctx.store, agent.uid, conversation)
			if (typeof key === 'string') return { key, value: Object.hasOwn(notes, key) ? notes[key] : null }
			const messages = await messagesOf(ctx.store, agent, conversation, RECENT_TURNS)
			return { notes, messages: messages.map(({ role, content }) => ({ role, content })) }
		},
	})
	ctx.primitive({
		name: 'memory.stm_write',
		description:
			'Writes a note to the short-term memory of this conversation; the value null deletes it. At most 64 notes.',
		parameters: Joi.object({
			key: Joi.string().min(1).max(128).invalid('__proto__').required().description('The name of the note.'),
			value: Joi.any().required().description('Any JSON value, at most 16 KiB.'),
		}),
		async run({ key, value }, { agent, conversation }) {
			return { key, notes: await writeNote(ctx.store, agent.uid, conversation, key as string, value) }
		},
	})
}
