/** One channel is switched off, on and reconfigured, and a plugin's code is broken, while another channel is in use. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { startDiscord } from '../support/discord.ts'
import { startGateway } from '../support/gateway.ts'
import { addChannel, waitForConnection } from '../support/loop.ts'
import { startTelegram } from '../support/telegram.ts'
import { eventually } from '../support/wait.ts'

/** Between two messages. */
const PAUSE_MS = 100
const ROUNDS = Number(process.env.SVC_TEST_RELOADS ?? 1)

void t.test('changes of Telegram do not affect Discord, and no message is lost', async (t) => {
	const [telegram, discord] = await Promise.all([startTelegram(), startDiscord()])
	const third = (code: string): string => `export default { name: 'third', start(ctx) { ${code} } }`
	const gateway = await startGateway({ files: { 'plugins/third/index.js': third('') } })
	t.teardown(async () => {
		await gateway.stop()
		await Promise.all([telegram.stop(), discord.stop()])
	})
	const configure = (plugins: string): void =>
		writeFileSync(join(gateway.home, 'config/gateway.yaml'), `plugins:\n  third: true\n  ${plugins}\n`)
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const a = await addChannel(gateway, telegram.token, { type: 'chat_a', config: { api_root: telegram.url } })
	const b = await addChannel(gateway, discord.token, { type: 'chat_b', config: { api_root: discord.url } })
	await waitForConnection(gateway, a, 'connected')
	await waitForConnection(gateway, b, 'connected')
	const [person, room] = [telegram.person(7, 'Grace'), discord.addDirect()]
	for (const [channel_id, id] of [
		[a, String(person.id)],
		[b, room.id],
	]) {
		const body = { agent_id: 'ada', channel_id, external_chat_id: id }
		t.equal((await gateway.request('POST', '/v1/channels/pair', { body })).status, 201)
	}
	/** IDENTIFY and RESUME. */
	const logins = (): number => discord.received.filter(({ op }) => op === 2 || op === 6).length
	t.equal(logins(), 1)

	// A person sends messages on Discord all the time, each after the answer to the one before.
	let isTalking = true
	let answered = 0
	const talk = async (): Promise<void> => {
		for (let n = 1; isTalking; n++) {
			discord.say(room, `word ${n}.`)
			await eventually(
				() => discord.written(room).filter(({ content }) => content.includes(`word ${n}.`)).length,
				(count) => count > 0,
			)
			answered = n
			await pause(PAUSE_MS)
		}
	}
	const talking = talk()
	const oneMoreAnswer = async (): Promise<void> => {
		const before = answered
		await eventually(
			() => answered,
			(count) => count > before,
		)
	}

	const asked: string[] = []
	const ask = (text: string): void => {
		asked.push(text)
		telegram.say(person, text)
	}
	for (let round = 1; round <= ROUNDS; round++) {
		ask(`on ${round}.`)
		configure('telegram: false')
		await waitForConnection(gateway, a, 'disabled')
		ask(`off ${round}.`)
		await oneMoreAnswer()
		// Broken code of a plugin has no effect, and the fixed code is applied.
		writeFileSync(join(gateway.home, 'plugins/third/index.js'), 'export default {')
		await eventually(
			async () =>
				(await gateway.request('GET', '/v1/plugins')).body.find((one: { name: string }) => one.name === 'third'),
			(one) => one.last_error !== null,
		)
		await oneMoreAnswer()
		writeFileSync(join(gateway.home, 'plugins/third/index.js'), third(`ctx.log.debug('${round}')`))
		configure('telegram: true')
		await waitForConnection(gateway, a, 'connected')
		const change = { config: { answer: round % 2 === 0 ? 'all' : 'mentions' } }
		t.equal((await gateway.request('PATCH', `/v1/channels/${a}`, { body: change })).status, 200)
		await oneMoreAnswer()
	}
	await eventually(
		() => asked.filter((text) => telegram.messages(person).some((one) => one.text.includes(text))).length,
		(count) => count === asked.length,
	)
	isTalking = false
	await talking

	const times = (texts: string[], text: string): number => texts.filter((one) => one.includes(text)).length
	const answers = telegram.messages(person).map(({ text }) => text)
	for (const text of asked) t.equal(times(answers, text), 1, `"${text}" was answered once`)
	const written = discord.written(room).map(({ content }) => content)
	for (let n = 1; n <= answered; n++) if (times(written, `word ${n}.`) !== 1) t.fail(`word ${n}. was not answered once`)
	t.ok(answered > ROUNDS)
	t.equal(logins(), 1, 'Discord kept its connection')
})
