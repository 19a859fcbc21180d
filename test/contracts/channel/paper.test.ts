/** Runs the suite on a platform with drafts and with `find` instead of nonces, and on faulty adapters for it. */
import t from 'tap'
import type { ChannelAdapter, Connection } from '../../../plugins/channels/adapter.ts'
import { channelChecks, checkChannel } from '../channel.ts'
import { absenceCheck } from './absence.ts'
import { runCheck } from './harness.ts'
import { paper, paperPlatform } from './paper.ts'

checkChannel(t, {
	adapter: paper,
	platform: paperPlatform,
	abilities: {
		config: false,
		unguarded: false,
		groups: false,
		replies: false,
		threads: false,
		attachments: false,
		files: false,
		repeats: false,
		edits: false,
		sends_files: false,
		typing: false,
		limited: false,
		format: false,
		stalled: false,
		revoke: false,
	},
})

/** The platform needs only a few turns of the event loop. */
const PATIENCE_MS = 1_000

/** The adapter with some methods of its connection broken. */
function broken(change: (right: Required<Connection>) => Partial<Connection>): ChannelAdapter {
	return {
		...paper,
		async connect(link) {
			const connection = (await paper.connect(link as Parameters<typeof paper.connect>[0])) as Required<Connection>
			return { ...connection, ...change(connection) }
		},
	}
}

const mutants: [what: string, caught: string, message: RegExp, adapter: ChannelAdapter][] = [
	[
		'a draft is sent as a message',
		'shows a draft',
		/a draft replaces the previous one/,
		broken(({ send }) => ({ draft: async (message) => void (await send(message)) })),
	],
	[
		'find ignores the mark',
		'does not mistake another message for the lost one',
		/an older message with the same text is not found/,
		broken(({ find }) => ({ find: (message) => find(message, '0') })),
	],
	[
		'find ignores the text',
		'does not mistake another message for the lost one',
		/a newer message with another text is not found/,
		broken(({ find }) => ({ find: (message, mark) => find({ ...message, text: 'no' }, mark) })),
	],
	[
		'find never finds anything',
		'sends once although the answer was lost',
		/is shown once/,
		broken(() => ({ find: () => Promise.resolve(undefined) })),
	],
	[
		'the mark is only valid for one connection',
		'sends once although the answer was lost and the gateway was killed',
		/is shown once/,
		broken(({ find, mark }) => {
			const marks = new Map<string, string | undefined>()
			return {
				mark: (chat) => (marks.set(chat.id, mark(chat)), 'see my list'),
				find: (message) => find(message, marks.get(message.chat.id) ?? 'lost'),
			}
		}),
	],
	[
		'the mark is long',
		'sends once although the answer was lost',
		/at most 256/,
		broken(({ mark }) => ({ mark: (chat) => `${mark(chat)}${' '.repeat(256)}` })),
	],
	[
		'there is neither a nonce nor find',
		'sends once although the answer was lost',
		/is shown once/,
		{ ...paper, connect: async (link) => without(await paper.connect(link as never), 'find') } as ChannelAdapter,
	],
	[
		'failures have no code',
		'reports `failed` if nothing was sent',
		/what to do next/,
		broken(({ send }) => ({ send: (message) => send(message).catch(() => Promise.reject(new Error('it failed'))) })),
	],
	[
		'the chat of a message is kept beside it',
		'sends to several chats at once',
		/its own message/,
		broken(({ send }) => {
			let current: Parameters<typeof send>[0]['chat']
			return {
				async send(message) {
					current = message.chat
					await Promise.resolve()
					return send({ ...message, chat: current })
				},
			}
		}),
	],
	[
		'draft is missing',
		'connects, and provides the methods for its abilities',
		/draft\(\), as can.preview says/,
		{ ...paper, connect: async (link) => without(await paper.connect(link as never), 'draft') } as ChannelAdapter,
	],
]

function without(connection: Connection, method: keyof Connection): Connection {
	const { [method]: _, ...rest } = connection
	return rest as Connection
}

for (const [what, caught, message, adapter] of mutants) {
	void t.test(`caught: ${what}`, async (t) => {
		const check = channelChecks.find(({ name }) => name === caught)
		if (!check) throw new Error(`there is no check ${caught}`)
		await t.rejects(runCheck(check, { adapter, platform: paperPlatform, patience_ms: PATIENCE_MS }), { message })
	})
}

void t.test('a flag that is wrong is noticed', async (t) => {
	const suite = { adapter: paper, platform: paperPlatform, patience_ms: PATIENCE_MS }
	const denied = (ability: 'find' | 'drafts' | 'lost') =>
		runCheck(absenceCheck, { ...suite, abilities: { [ability]: false } })
	for (const ability of ['find', 'drafts', 'lost'] as const)
		await t.rejects(denied(ability), {
			message: new RegExp(`abilities.${ability}. is false, but the ability is present`),
		})
	const check = channelChecks.find(({ name }) => name === 'edits')
	if (!check) throw new Error('there is no check of edits')
	await t.rejects(runCheck(check, suite), {
		message: /connection\.edit, or the suite has the flag `abilities: \{ edits: false \}`/,
	})
})
