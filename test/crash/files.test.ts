/**
 * kill -9 while the file of a message is being downloaded, and soon after. Meanwhile other chats of the bot are answered;
 * afterwards each message has led to one run and one answer, in the order of its chat.
 *
 * CHANNEL_KILLS sets the number of kills once the file can be downloaded (1).
 */
import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { startDiscord } from '../support/discord.ts'
import { png } from '../support/files.ts'
import { makeHome, send } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import { ongoingRunsEnd } from '../support/restarts.ts'
import { startTelegram } from '../support/telegram.ts'
import { eventually } from '../support/wait.ts'

const KILLS = Number(process.env.CHANNEL_KILLS ?? 1)
/** A kill strikes that long after the file was asked for, at most. */
const WINDOW_MS = 150
const FILE = 'photo.png'

interface Platform {
	api_root: string
	token: string
	files: Map<string, Buffer | 'never'>
	/** The name in each request for a file so far. */
	loads: string[]
	chat(): Person
	stop(): Promise<void>
}

interface Person {
	id: string
	say(text: string): void
	/** Says something, with the photo. */
	show(text: string): void
	/** What the bot has said there. */
	said(): string[]
}

async function telegram(): Promise<Platform> {
	const server = await startTelegram()
	let people = 0
	return {
		api_root: server.url,
		token: server.token,
		files: server.files,
		loads: server.loads,
		chat() {
			const chat = server.person(++people, `P${people}`)
			return {
				id: String(chat.id),
				say: (text) => void server.say(chat, text),
				show: (caption) => void server.say(chat, '', { text: undefined, caption, photo: [{ file_id: FILE }] }),
				said: () => server.messages(chat).map(({ text }) => text),
			}
		},
		stop: server.stop,
	}
}

async function discord(): Promise<Platform> {
	const server = await startDiscord()
	const file = { id: '1', filename: FILE, content_type: 'image/png', url: `${server.url}/files/${FILE}` }
	return {
		api_root: server.url,
		token: server.token,
		files: server.files,
		loads: server.loads,
		chat() {
			const chat = server.addChannel()
			return {
				id: chat.id,
				say: (text) => void server.say(chat, text, { mention: true }),
				show: (text) => void server.say(chat, text, { mention: true, more: { attachments: [file] } }),
				said: () => server.written(chat).map(({ content }) => content),
			}
		},
		stop: () => server.stop(),
	}
}

async function check(t: Test, type: string, platform: Platform): Promise<void> {
	t.teardown(() => platform.stop())
	const home = makeHome({ config: 'server: { shutdown_grace_s: 0 }\nchannels: { retry_max_s: 1 }\n' })
	t.teardown(() => rmSync(home, { recursive: true, force: true }))
	let gateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const request = async (method: string, path: string, body?: unknown) => {
		const reply = await send(`${gateway.url}/v1/${path}`, method, { body })
		if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
		return reply.body
	}
	await request('POST', 'vault/secrets', { name: 'BOT', value: platform.token })
	const config = { api_root: platform.api_root }
	const { id: channel_id } = await request('POST', 'channels', { type, bot_token_ref: 'BOT', config })
	const [slow, other] = [platform.chat(), platform.chat()]
	for (const [name, { id }] of [
		['slow', slow],
		['other', other],
	] as const) {
		await request('POST', 'agents', { name })
		await request('POST', 'channels/pair', { agent_id: name, channel_id, external_chat_id: id })
	}
	// Discord tells nobody of what was said before the first connection.
	await eventually(
		() => request('GET', `channels/${channel_id}`),
		({ connection }) => connection === 'connected',
	)
	const answersTo = ({ said }: Person, text: string): number => said().filter((one) => one.includes(text)).length
	const isAnswered = (person: Person, text: string) =>
		eventually(
			() => answersTo(person, text),
			(count) => count > 0,
		)
	const isAskedAgain = (before: number) =>
		eventually(
			() => platform.loads.length,
			(count) => count > before,
		)

	platform.files.set(FILE, 'never')
	slow.show('look.')
	await isAskedAgain(0)
	slow.say('and this?')
	other.say('hello.')
	await isAnswered(other, 'hello.')
	t.equal(answersTo(slow, 'and this?'), 0, 'its own chat waits')
	await gateway.kill()

	gateway = await spawnGateway(home)
	await isAskedAgain(1)
	other.say('hello again.')
	await isAnswered(other, 'hello again.')
	for (let kill = 1; kill <= KILLS; kill++) {
		await gateway.kill()
		platform.files.set(FILE, png(FILE))
		const before = platform.loads.length
		gateway = await spawnGateway(home)
		// A further kill may strike before the file is asked for again, or once nobody asks any more.
		if (kill === 1) await isAskedAgain(before)
		// Else more of them in a row may meet the same step of a run, which is then given up.
		if (kill % 2 === 0) await ongoingRunsEnd(gateway.url)
		await pause(Math.random() * WINDOW_MS)
	}
	await gateway.kill()
	gateway = await spawnGateway(home)
	await isAnswered(slow, 'look.')
	await isAnswered(slow, 'and this?')
	for (const [person, text] of [
		[slow, 'look.'],
		[slow, 'and this?'],
		[other, 'hello.'],
		[other, 'hello again.'],
	] as const)
		t.equal(answersTo(person, text), 1, `${text} is answered once`)
	const runs: { prompt: string; attachments?: { name?: string; media_type: string }[] }[] = await request(
		'GET',
		'agents/slow/runs',
	)
	t.strictSame(
		runs.map(({ prompt }) => prompt.replace(/^Message from .*\n\n/, '')),
		['and this?', 'look.'],
		'one run for each message, in order',
	)
	t.match(runs[1]?.attachments, [{ media_type: 'image/png' }])
	t.equal(gateway.errors(), '', 'nothing went wrong in the last gateway')
}

t.jobs = 2
const timeout = 300_000 + KILLS * 10_000
void t.test('chat_a', { timeout }, async (t) => check(t, 'chat_a', await telegram()))
void t.test('chat_b', { timeout }, async (t) => check(t, 'chat_b', await discord()))
