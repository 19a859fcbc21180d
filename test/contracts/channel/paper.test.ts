/** A platform with drafts, and with `find` in the place of nonces; and adapters for it that are wrong about them. */
import t from 'tap'
import type { ChannelAdapter, Connection } from '../../../plugins/channels/adapter.ts'
import { channelChecks, checkChannel } from '../channel.ts'
import { absenceCheck } from './absence.ts'
import { runCheck } from './desk.ts'
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

/** Its platform needs no more than a few turns of the event loop. */
const PATIENCE_MS = 1_000

/** The same, with some methods of its connection broken. */
function broken(change: (right: Required<Connection>) => Partial<Connection>): ChannelAdapter {
	return {
		...paper,
		async connect(link) {
			const connection = (await paper.connect(link as Parameters<typeof paper.connect>[0])) as Required<Connection>
			return { ...connection, ...change(connection) }
		},
	}
}

const mutants: [what: string, caught: string, says: RegExp, adapter: ChannelAdapter][] = [
	[
		'a draft is sent as a message',
		'shows a draft',
		/a draft replaces the previous one/,
		broken(({ send }) => ({ draft: async (message) => void (await send(message)) })),
	],
	[
		'find takes whatever says the same',
		'takes no other message for the one that was lost',
		/an older message of the same text is not the one/,
		broken(({ find }) => ({ find: (message) => find(message, '0') })),
	],
	[
		'find takes whatever is the newest',
		'takes no other message for the one that was lost',
		/a newer message of another text is not the one/,
		broken(({ find }) => ({ find: (message, mark) => find({ ...message, text: 'no' }, mark) })),
	],
	[
		'find knows nothing',
		'sends once, though the answer was lost',
		/shows once/,
		broken(() => ({ find: () => Promise.resolve(undefined) })),
	],
	[
		'the mark is only valid for one connection',
		'sends once, though the answer was lost and the gateway died',
		/shows once/,
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
		'sends once, though the answer was lost',
		/at most 256/,
		broken(({ mark }) => ({ mark: (chat) => `${mark(chat)}${' '.repeat(256)}` })),
	],
	[
		'there is neither a nonce nor find',
		'sends once, though the answer was lost',
		/shows once/,
		{ ...paper, connect: async (link) => without(await paper.connect(link as never), 'find') } as ChannelAdapter,
	],
	[
		'failures have no code',
		'says `failed` where nothing was sent',
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
		'connects, and gives what it said it can',
		/draft\(\), as can.preview says/,
		{ ...paper, connect: async (link) => without(await paper.connect(link as never), 'draft') } as ChannelAdapter,
	],
]

function without(connection: Connection, method: keyof Connection): Connection {
	const { [method]: _, ...rest } = connection
	return rest as Connection
}

for (const [what, caught, says, adapter] of mutants) {
	void t.test(`caught: ${what}`, async (t) => {
		const check = channelChecks.find(({ name }) => name === caught)
		if (!check) throw new Error(`there is no check ${caught}`)
		await t.rejects(runCheck(check, { adapter, platform: paperPlatform, patience_ms: PATIENCE_MS }), { message: says })
	})
}

void t.test('a flag that is wrong is noticed', async (t) => {
	const suite = { adapter: paper, platform: paperPlatform, patience_ms: PATIENCE_MS }
	const denied = (ability: 'find' | 'drafts' | 'lost') =>
		runCheck(absenceCheck, { ...suite, abilities: { [ability]: false } })
	for (const ability of ['find', 'drafts', 'lost'] as const)
		await t.rejects(denied(ability), { message: new RegExp(`abilities.${ability}. is false, and it is there`) })
	const check = channelChecks.find(({ name }) => name === 'edits')
	if (!check) throw new Error('there is no check of edits')
	await t.rejects(runCheck(check, suite), {
		message: /connection\.edit, or the suite has the flag `abilities: \{ edits: false \}`/,
	})
})
