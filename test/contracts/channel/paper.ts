/**
 * A platform without nonces and with drafts, unlike Matrix. It runs in this process, and keeps letters until the bot confirms them.
 */
import type { ChannelAdapter, ChatKind, ChatRef, Link } from '../../../plugins/channels/adapter.ts'
import type { ShownMessage, TestChat, TestPlatform } from '../channel.ts'

interface Letter {
	number: number
	chat: string
	kind: ChatKind
	by: 'bot' | 'person'
	text: string
}

type Fault = 'lost' | 'failed' | 'refused'

interface Office {
	letters: Letter[]
	drafts: Map<string, string>
	fault: Fault | undefined
	/** Connections that wait for a letter. */
	waiting: Set<{ wake: () => void; cut: () => void }>
	inProgress: number
}

const offices = new Map<string, Office>()

export function paperPlatform(): Promise<TestPlatform> {
	const name = `office-${offices.size}`
	const office: Office = { letters: [], drafts: new Map(), fault: undefined, waiting: new Set(), inProgress: 0 }
	offices.set(name, office)
	let chats = 0

	function chat(kind: ChatKind): TestChat | undefined {
		if (kind === 'group') return undefined
		const id = `${name}-${++chats}`
		return {
			id,
			kind,
			say(text) {
				office.letters.push({ number: office.letters.length + 1, chat: id, kind, by: 'person', text })
				for (const { wake } of office.waiting) wake()
			},
			shown: () => office.letters.filter((one) => one.chat === id && one.by === 'bot').map(shown),
			draft: () => office.drafts.get(id),
		}
	}

	const next = (fault: Fault) => (): void => void (office.fault = fault)
	return Promise.resolve({
		config: { office: name },
		token: 'a token of this office',
		wrong_token: 'a wrong one',
		chat,
		cut: () => office.waiting.forEach(({ cut }) => cut()),
		open: () => office.inProgress,
		close: async () => void offices.delete(name),
		next: { lost: next('lost'), failed: next('failed'), refused: next('refused') },
	})
}

function shown({ number, text }: Letter): ShownMessage {
	return { id: String(number), text }
}

export const paper: ChannelAdapter<{ office: string }> = {
	type: 'paper',
	label: 'Paper',
	can: { formats: [{ markup: 'plain', max_length: 500 }], preview: { private: 'draft' } },
	async connect(link) {
		const office = offices.get(link.config.office)
		if (!office || link.signal.aborted) throw new Error('the office is closed')
		if (link.token === 'a wrong one') throw link.error('refused', 'the office does not know this token')
		const ended = listen(link, office)
		const own = ({ id }: ChatRef): Letter[] => office.letters.filter((one) => one.chat === id && one.by === 'bot')
		return {
			async send({ chat, text }) {
				const { fault } = office
				office.fault = undefined
				if (fault === 'failed' || fault === 'refused') throw link.error(fault, 'the office says no')
				office.letters.push({ number: office.letters.length + 1, chat: chat.id, kind: chat.kind, by: 'bot', text })
				office.drafts.delete(chat.id)
				if (fault === 'lost') throw new Error('the office went away')
				return { id: String(office.letters.length) }
			},
			async draft({ chat, text }) {
				office.drafts.set(chat.id, text)
			},
			mark: (chat) => String(own(chat).at(-1)?.number ?? 0),
			async find({ chat, text }, mark) {
				const found = own(chat).find((one) => one.number > Number(mark) && one.text === text)
				return found && { id: String(found.number) }
			},
			close: () => ended,
		}
	},
}

async function listen(link: Link<{ office: string }>, office: Office): Promise<void> {
	const cursor = await link.cursor()
	let at = Number(cursor ?? office.letters.length)
	try {
		if (cursor === null) await link.advance(String(at))
		while (!link.signal.aborted) {
			const letter = office.letters[at]
			if (!letter) await arrival(office, link.signal)
			else if (letter.by === 'person') await link.receive(toMessage(letter))
			if (letter) at++
		}
	} catch (error) {
		if (!link.signal.aborted) link.lost(error)
	}
}

function arrival(office: Office, signal: AbortSignal): Promise<void> {
	const { promise, resolve, reject } = Promise.withResolvers<void>()
	const waiting = { wake: () => resolve(), cut: () => reject(new Error('cut')) }
	office.waiting.add(waiting)
	office.inProgress++
	signal.addEventListener('abort', waiting.wake)
	return promise.finally(() => {
		office.waiting.delete(waiting)
		office.inProgress--
		signal.removeEventListener('abort', waiting.wake)
	})
}

function toMessage({ number, chat, kind, text }: Letter) {
	const id = String(number)
	return { id, chat: { id: chat, kind }, sender: { id: 'a-person' }, text, addressed: true, cursor: id }
}
