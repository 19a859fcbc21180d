/** Conversations: order, pages and deletion of their list, and a kill of the gateway. */
import t from 'tap'
import type { Test } from 'tap'
import { newId } from '../../../core/util/ids.ts'
import { svcFor } from '../../support/cli.ts'
import { makeHome, send, startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { spawnGateway } from '../../support/process.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'
import type { Followed } from '../../support/runs.ts'
import { smallProvider, startSmallModel, summaryAsked } from '../../support/small-model.ts'
import { eventually } from '../../support/wait.ts'

interface Listed {
	conversation: string
	is_session: boolean
	created_at: string
	newest_run: { run_id: string; prompt: string; status: string; trigger: string }
}

interface Page {
	conversations: Listed[]
	next_cursor: string | null
}

async function start(
	t: Test,
	config = '# the defaults\n',
): Promise<Followed & { remove(path: string): Promise<number> }> {
	const gateway = await startGateway({ config })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	return { ...ada, remove: async (path) => (await gateway.request('DELETE', `/v1/agents/ada/${path}`)).status }
}

/** Completes each prompt in a new session. Returns the conversations. */
async function sessions(ada: Followed, prompts: string[]): Promise<string[]> {
	const conversations: string[] = []
	for (const prompt of prompts) {
		if (conversations.length > 0) await ada.call('reset', {})
		conversations.push((await ada.read(await ada.complete(prompt))).conversation)
	}
	return conversations
}

const list = async (ada: Followed, query = ''): Promise<Page> =>
	(await ada.call(`conversations${query}`)).body as unknown as Page
const prompts = ({ conversations }: Page): string[] => conversations.map(({ newest_run }) => newest_run.prompt)

void t.test('lists conversations by their newest run, and reads them', async (t) => {
	const ada = await start(t)
	t.strictSame(await list(ada), { conversations: [], next_cursor: null })
	const [first, second, third] = await sessions(ada, ['one', 'two', 'three'])
	const all = await list(ada)
	t.strictSame(prompts(all), ['three', 'two', 'one'])
	t.strictSame(
		all.conversations.map(({ conversation, is_session }) => [conversation, is_session]),
		[
			[third, true],
			[second, false],
			[first, false],
		],
	)
	t.equal(all.next_cursor, null)
	await ada.complete('four')
	const again = await list(ada)
	t.strictSame(prompts(again), ['four', 'two', 'one'], 'each conversation is listed once, with its newest run')
	t.equal(again.conversations[0]?.created_at, all.conversations[0]?.created_at, 'created_at is that of the first run')

	const { body } = await ada.call(`conversations/${third}?limit=1`)
	t.match(body, { conversation: third, is_session: true, newest_run: { prompt: 'four', status: 'completed' } })
	t.match(body.turns, [
		{ status: 'completed', trigger: 'api', messages: [{ role: 'user', content: 'four' }, { role: 'assistant' }] },
	])
	const older = (await ada.call(`conversations/${third}?limit=1&cursor=${body.next_cursor}`)).body
	t.match(older, {
		newest_run: { prompt: 'four' },
		turns: [{ messages: [{ content: 'three' }, {}] }],
		next_cursor: null,
	})

	await ada.call('reset', {})
	t.match((await ada.call('conversations/none')).body, {
		statusCode: 404,
		code: 'not_found',
		message: /agent "ada" has no conversation "none"/,
	})
	t.match((await ada.call('conversations?cursor=x')).body, { statusCode: 400, code: 'invalid_request' })
	t.match((await ada.call('conversations?limit=501')).body, { statusCode: 400 })
	t.match((await ada.call(`conversations/${third}?cursor=x`)).body, { statusCode: 400 })
})

void t.test('pages keep the order of the first page while runs begin', async (t) => {
	const ada = await start(t)
	await sessions(ada, ['one', 'two', 'three', 'four'])
	const first = await list(ada, '?limit=2')
	t.strictSame(prompts(first), ['four', 'three'])
	await ada.complete('again in the fourth')
	await ada.call('reset', {})
	await ada.complete('five')
	const second = await list(ada, `?limit=1&cursor=${first.next_cursor}`)
	t.strictSame(prompts(second), ['two'])
	const third = await list(ada, `?limit=2&cursor=${second.next_cursor}`)
	t.strictSame([prompts(third), third.next_cursor], [['one'], null])
	t.strictSame(prompts(await list(ada)), ['five', 'again in the fourth', 'three', 'two', 'one'])
	const unknown = `${newId()}.${newId()}`
	t.strictSame(prompts(await list(ada, `?cursor=${unknown}`)).length, 5, 'a cursor need not be the id of a run')
})

void t.test('deleted conversations and those of summaries are not listed and not found', async (t) => {
	const model = await startSmallModel(t, 8_192, (request) =>
		summaryAsked(request) === undefined ? 'Well.' : 'A summary.',
	)
	const ada = await start(t, smallProvider(model))
	const [first, second] = await sessions(ada, ['one', 'two'])
	for (const prompt of ['three', 'four']) await ada.complete(prompt)
	t.equal((await ada.call(`conversations/${second}/compact`, {})).status, 200)
	await ada.stream.waitFor('context.summarized')
	const runs = (await ada.call('runs')).body as unknown as { trigger: string; conversation: string }[]
	const summary = runs.find(({ trigger }) => trigger === 'summary')
	t.ok(summary, 'the summary has a run')
	t.strictSame(prompts(await list(ada)), ['four', 'one'])
	t.equal((await ada.call(`conversations/${summary?.conversation}`)).status, 404)

	t.equal(await ada.remove(`conversations/${first}`), 204)
	t.strictSame(prompts(await list(ada)), ['four'])
	t.equal((await ada.call(`conversations/${first}`)).status, 404)
	t.equal(await ada.remove(`conversations/${second}`), 204)
	t.strictSame(await list(ada), { conversations: [], next_cursor: null })
})

void t.test('svc lists and shows conversations', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const svc = svcFor(gateway)
	const ada = await follow(t, gateway, 'ada')
	t.match(await svc(['conversations', 'show', 'ada']), { code: /[^0]/, stderr: /ada has no conversation yet/ })
	t.match((await svc(['conversations', 'list', 'ada'])).stdout, /svc chat ada/)
	const [first = '', second = ''] = await sessions(ada, ['one', 'two'])
	await ada.complete('three\nassistant: not me')
	const { stdout } = await svc(['conversations', 'list', 'ada'])
	t.ok(stdout.indexOf(second) < stdout.indexOf(first) && stdout.includes(second), stdout)
	t.match((await svc(['conversations', 'list', 'ada', '--limit', '1', '--json'])).json(), [{ conversation: second }])
	t.match((await svc(['conversations', 'show', 'ada'])).stdout, /user: two\n(.*\n)*user: three\n  assistant: not me\n/)
	t.match(stdout, /api, current session/)
	t.match((await svc(['conversations', 'show', 'ada', first])).stdout, /user: one/)
	t.notMatch((await svc(['conversations', 'show', 'ada', '--limit', '1'])).stdout, /user: two/)
	t.match(await svc(['conversations', 'show', 'ada', 'none']), { stderr: /"svc conversations list ada" lists them/ })
})

void t.test('all acknowledged conversations survive a kill, in order', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const home = makeHome({ config: `server: { shutdown_grace_s: 0 }\n${providersAt({ held: model.url })}` }, t)
	const first = await spawnGateway(home)
	t.teardown(() => first.kill())
	const post = async (path: string, body: unknown) =>
		(await send(`${first.url}/v1/agents${path}`, 'POST', { body })).body
	await post('', { name: 'ada' })
	for (const prompt of ['one', 'two', 'three']) {
		await post('/ada/runs', { prompt })
		await post('/ada/runs', { prompt: `${prompt}, and what waits behind it` })
		await post('/ada/reset', {})
	}
	const read = async (url: string) => (await send(`${url}/v1/agents/ada/conversations`, 'GET')).body as unknown as Page
	const before = await read(first.url)
	t.strictSame(
		prompts(before),
		['three', 'two', 'one'].map((prompt) => `${prompt}, and what waits behind it`),
	)
	await first.kill()

	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const after = await read(second.url)
	const rowsOf = ({ conversations }: Page) =>
		conversations.map(({ conversation, created_at, newest_run: { run_id } }) => [conversation, created_at, run_id])
	t.strictSame(rowsOf(after), rowsOf(before))
	const { conversation = '' } = after.conversations[2] ?? {}
	const url = `${second.url}/v1/agents/ada/conversations/${conversation}`
	t.match((await send(url, 'GET')).body.turns, [
		{ status: 'queued', messages: [{ role: 'user', content: 'one, and what waits behind it' }] },
		{ messages: [{ role: 'user', content: 'one' }] },
	])
	t.equal((await send(url, 'DELETE')).status, 204)
	await eventually(async () => (await read(second.url)).conversations.length === 2)
})
