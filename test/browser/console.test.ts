/** The console in a real browser: every page with real data, and the actions of an operator. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import t from 'tap'
import type { Test } from 'tap'
import { addToken } from '../support/add.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { png } from '../support/files.ts'
import { addChannel, codeFor, loopFiles, openLoop } from '../support/loop.ts'
import { servers as fixtures } from '../support/mcp.ts'
import { startManualModel } from '../support/manual-model.ts'
import { startModelServer } from '../support/model-server.ts'
import { startProtectedServer } from '../support/oauth.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'
import { noBrowser, startBrowser } from './chromium.ts'

const SIZE = { width: 1280, height: 720 }
const TITLES = [
	'Home',
	'Inbox',
	'Runs',
	'Chat',
	'Agents',
	'Channels',
	'Models',
	'Vault',
	'Tokens',
	'Events',
	'Plugins',
	'Backups',
	'Cluster',
	'Configuration',
]

const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** Serious and critical findings of axe: barriers for people who use a keyboard or a screen reader. */
async function barriersOn(page: Page): Promise<string[]> {
	// Loaded over the browser's protocol, since the page's policy blocks other scripts. It stays until the document changes.
	if (await page.evaluate('typeof axe === "undefined"')) await page.evaluate(axe)
	const { violations } = await page.evaluate<{
		violations: { id: string; impact: string; nodes: { html: string }[] }[]
	}>('axe.run(document, { resultTypes: ["violations"] })')
	const barriers = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
	return barriers.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`)
}

const SKILL = `---
name: greeter
description: Greets people.
---
Greet whoever is named.\u200b
`

let browser: Promise<Browser> | undefined
t.teardown(async () => (await browser)?.close())

/** Opens a tab with this gateway as base URL, in one browser for all tests. */
async function newPage(t: Test, { url }: TestGateway, options?: BrowserContextOptions): Promise<Page> {
	const page = await (await (browser ??= startBrowser([]))).newPage({ baseURL: url, ...options })
	t.teardown(() => page.close())
	return page
}

void t.test('the console', { skip: noBrowser }, async (t) => {
	const loop = openLoop()
	const [model, manual] = await Promise.all([startModelServer(), startManualModel()])
	t.teardown(() => Promise.all([model.stop(), manual.stop()]))
	model.on(/Tell me/, { text: '# Title\n\n- **bold** <img src=x onerror=alert(1)> [bad](javascript:alert(1))' })
	model.on(/Quote me/, { text: '>'.repeat(20_000) })
	model.on(/word "ready"/, 'ready')
	const gateway = await startGateway({
		config: `providers:\n  manual: {kind: openai, base_url: "${manual.url}", model: qwen3}\n  local: {kind: openai, base_url: "${model.url}", model: qwen3}\ndefault_provider: local\nplugins: {tides: true, loop: true}\n`,
		files: { 'plugins/tides/index.js': "throw new Error('no such luck')", ...loopFiles() },
	})
	t.teardown(() => gateway.stop())
	const api = (method: string, path: string, body?: object) => gateway.request(method, path, { ...(body && { body }) })
	for (const name of ['ada', 'bob']) await api('POST', '/v1/agents', { name })
	const page = await newPage(t, gateway)
	const problems: string[] = []
	page.on('pageerror', (error) => problems.push(String(error)))
	page.on('console', (message) => {
		if (message.type() === 'error' && message.text().includes('Content Security Policy')) problems.push(message.text())
	})
	/** Loads the console again, in the same tab for all tests: a new tab takes twice the CPU time. */
	const open = async (t: Test, hash = ''): Promise<Page> => {
		t.teardown(async () => {
			await page.unrouteAll({ behavior: 'ignoreErrors' })
			await page.setViewportSize(SIZE)
			await page.goto('about:blank')
		})
		await page.goto(`/${hash}`)
		return page
	}
	/** Waits for the earlier messages, since a message that is sent before may show twice for a moment. */
	const openChat = async (t: Test, agent: string): Promise<Page> => {
		await open(t, `#/chat/${agent}`)
		await page.locator('.said').first().waitFor()
		return page
	}

	await t.test('is served to browsers, and loads nothing from other origins', async (t) => {
		const page = await gateway.request('GET', '/', { headers: { accept: 'text/html' } })
		t.match(page.headers.get('content-security-policy'), /default-src 'none'; script-src 'self'/)
		t.notMatch(page.body, /https?:/)
		t.match((await gateway.request('GET', '/', { headers: { accept: 'application/json' } })).body, {
			name: 'svc gateway',
		})
		t.equal((await gateway.request('GET', '/console/..%2Findex.ts')).status, 404)
	})

	await t.test('the first page is small', async (t) => {
		const page = await open(t)
		await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
		const sizes = await page.evaluate<number[]>(
			`[performance.getEntriesByType('navigation'), performance.getEntriesByType('resource')]
				.flat()
				.filter(({ name }) => !name.includes('/v1/'))
				.map(({ encodedBodySize }) => encodedBodySize)`,
		)
		const total = sizes.reduce((sum, size) => sum + size, 0)
		t.ok(sizes.length > 3 && sizes.every((size) => size > 0), 'every file is counted')
		t.ok(total < 90_000, `${total} bytes`)
	})

	await t.test('shows every page', async (t) => {
		const page = await open(t)
		const names = await page.locator('nav a').allTextContents()
		t.strictSame(names, TITLES)
		for (const name of names) {
			await page.getByRole('link', { name, exact: true }).click()
			await page.getByRole('heading', { level: 1, name }).waitFor()
			t.equal(await page.locator('.problem').count(), 0, name)
			t.strictSame(await barriersOn(page), [], name)
		}
		for (const tab of ['Settings', 'Memory', 'MCP servers', 'Webhooks', 'Schedule']) {
			if (tab === 'Settings') await page.goto('/#/agents/ada')
			await page.locator('.tabs').getByRole('link', { name: tab }).click()
			await page.locator('.tabs a[aria-current]', { hasText: tab }).waitFor()
			await page.locator('form').first().waitFor()
			t.equal(await page.locator('.problem').count(), 0, tab)
			t.strictSame(await barriersOn(page), [], tab)
		}
	})

	await t.test('fits a phone, and a change of the address shows another agent', async (t) => {
		const page = await open(t, '#/agents/ada/memory')
		await page.setViewportSize({ width: 360, height: 700 })
		await page.getByRole('heading', { level: 1, name: 'ada' }).waitFor()
		t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
		await page.goto('/#/agents/bob/memory')
		await page.getByRole('heading', { level: 1, name: 'bob' }).waitFor()
		await page.goto('/#/config')
		await page.getByRole('heading', { level: 1, name: 'Configuration' }).waitFor()
		await page.waitForFunction(
			'document.querySelector("nav [aria-current]").getBoundingClientRect().right <= innerWidth',
		)
	})

	await t.test('a chat can be used with a keyboard, and on a phone', async (t) => {
		const page = await open(t, '#/chat/ada')
		const message = page.getByLabel('Message')
		await message.fill('Half a message')
		await message.press('Tab')
		t.equal(await page.evaluate('document.activeElement.type'), 'file', 'Tab reaches the button for files')
		const plan = { name: 'plan.txt', mimeType: 'text/plain', buffer: Buffer.from('a plan') }
		await page.locator('input[type=file]').setInputFiles(plan)
		await page.getByText('plan.txt').waitFor()
		await page.goto('/#/chat/bob')
		await page.waitForFunction('document.querySelector("textarea")?.value === ""')
		t.equal(await page.getByText('plan.txt').count(), 0, 'another chat has neither the text nor the file')
		await page.getByRole('link', { name: 'Runs' }).click()
		await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor()
		await page.goto('/#/chat/ada')
		await page.waitForFunction('document.querySelector("textarea")?.value === "Half a message"')
		await page.getByText('plan.txt').waitFor()
		const phone = await newPage(t, gateway, { hasTouch: true, isMobile: true })
		await phone.goto('/#/chat/ada')
		await phone.getByLabel('Message').fill('one')
		await phone.getByLabel('Message').press('Enter')
		t.equal(await phone.getByLabel('Message').inputValue(), 'one\n', 'Enter starts a new line')
	})

	await t.test('a message goes to the chat in which it was sent, with its files', async (t) => {
		const page = await open(t, '#/chat/ada/api:one')
		const send = async (): Promise<void> => {
			await page.getByLabel('Message').fill('See the file')
			await page
				.getByLabel('Attach')
				.setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('x') })
			await page.getByText('📎 note.txt').waitFor()
			await page.getByLabel('Message').press('Enter')
		}
		const held = Array.from({ length: 2 }, () => Promise.withResolvers<void>())
		const uploads: string[] = []
		await page.route('**/blobs?*', async (route) => {
			await held[uploads.push(route.request().url()) - 1]?.promise
			if (uploads.length > 1) await route.abort()
			else await route.continue()
		})
		await page.route('**/v1/agents/*/runs', (route) => route.abort())
		await send()
		await eventually(() => uploads.length === 1)
		await page.goto('/#/chat/ada/api:two')
		await page.getByText('There are no messages yet.').waitFor()
		const started = page.waitForRequest((request) => request.url().endsWith('/runs') && request.method() === 'POST')
		held[0]?.resolve()
		t.equal((await started).postDataJSON().conversation, 'one')

		await send()
		await eventually(() => uploads.length === 2)
		await page.goto('/#/chat/bob')
		await page.getByText('There are no messages yet.').waitFor()
		const failed = page.waitForEvent('requestfailed')
		held[1]?.resolve()
		await failed
		t.equal(await page.getByText('📎 note.txt').count(), 0, 'another chat does not show the file')
		await page.goto('/#/chat/ada/api:two')
		await page.waitForFunction('document.querySelector("textarea")?.value === "See the file"')
		await page.getByText('📎 note.txt').waitFor()
	})

	await t.test('a message is sent only after the history was read, which would contain it as well', async (t) => {
		const page = await newPage(t, gateway)
		const held = Promise.withResolvers<void>()
		const steps: string[] = []
		await page.route('**/history?*', async (route) => {
			await held.promise
			steps.push('history')
			await route.continue()
		})
		await page.route('**/v1/agents/ada/runs', (route) => {
			steps.push('run')
			return route.continue()
		})
		await page.goto('/#/chat/ada/api:early')
		await page.getByLabel('Message').fill('An early message')
		await page.getByLabel('Message').press('Enter')
		await page.getByText('is writing').waitFor()
		held.resolve()
		await page.getByRole('button', { name: 'Send' }).waitFor()
		await page.locator('.said.user', { hasText: 'An early message' }).waitFor()
		t.strictSame(steps.slice(0, 2), ['history', 'run'])
	})

	await t.test('the inbox shows results while it still reads many agents', async (t) => {
		const page = await newPage(t, gateway)
		const names = Array.from({ length: 201 }, (_, n) => ({ name: `agent-${n}` }))
		const held = Promise.withResolvers<void>()
		await page.route('**/v1/agents', (route) => route.fulfill({ json: names }))
		let failures = 1
		await page.route('**/v1/agents/*/*', async (route) => {
			await held.promise
			if (route.request().url().endsWith('/agent-7/mcp') && failures-- > 0) await route.abort()
			else await route.fulfill({ json: [] })
		})
		await page.clock.install()
		await page.goto('/#/inbox')
		await page.getByText('for the first 200 of 201 agents').waitFor()
		t.ok(await page.getByText('Loading …').isVisible())
		held.resolve()
		await page.getByRole('alert').waitFor()
		await page.clock.fastForward(10_000)
		await page.getByText('Loading …').waitFor({ state: 'detached' })
		t.equal(await page.getByRole('alert').count(), 0, 'an agent that could not be read is read again')
	})

	await t.test('a memory is stored, found and forgotten', async (t) => {
		const page = await open(t, '#/agents/bob/memory')
		await page.getByLabel('Content').fill('The office cat is called Biscotto.')
		await page.getByRole('button', { name: 'Store' }).click()
		await page.locator('td', { hasText: 'Biscotto' }).waitFor()
		await page.getByLabel('Search').fill('office cat')
		await page.getByRole('button', { name: 'Search' }).click()
		await page.getByText(/similarity 0\.\d\d/).waitFor()
		page.once('dialog', (dialog) => void dialog.accept())
		await page.getByRole('button', { name: /^Forget: The office cat/ }).click()
		await page.getByText('Nothing was found.').waitFor()
		t.strictSame((await api('GET', '/v1/agents/bob/memory')).body.memories, [])
	})

	await t.test('Home draws runs, durations and tokens, of all agents or one', async (t) => {
		model.on(/Home run/, { text: 'Done.', usage: { prompt_tokens: 1234, completion_tokens: 56 } })
		for (const name of ['ada', 'bob'])
			await completed(gateway, (await api('POST', `/v1/agents/${name}/runs`, { prompt: 'Home run' })).body.run_id)
		const page = await open(t)
		for (const name of ['Runs by day', 'Duration of runs', 'Tokens by day'])
			await page.getByRole('img', { name }).locator('canvas').waitFor()
		const points = (): Promise<number> =>
			page.evaluate(`(() => {
				const { width, height } = document.querySelector('canvas')
				const { data } = document.querySelector('canvas').getContext('2d').getImageData(0, 0, width, height)
				return new Set(data).size
			})()`)
		await eventually(async () => (await points()) > 1)
		await page.getByText('As a table').click()
		const cells = page.locator('details tbody td')
		t.equal((await cells.nth(1).innerText()).replaceAll(/\D/g, ''), '2580')
		await page.getByLabel('Agent').selectOption('bob')
		await eventually(async () => (await cells.nth(1).innerText()).replaceAll(/\D/g, '') === '1290')
		t.equal(await cells.nth(2).innerText(), '1')
		t.strictSame(await barriersOn(page), [])
		await page.setViewportSize({ width: 360, height: 700 })
		t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
	})

	await t.test('a chat that asked for a code is paired from the inbox', async (t) => {
		const id = await addChannel(gateway, 'inbox-token', { config: {} })
		await codeFor(loop, await loop.connected('inbox-token'), 'chat-7')
		const page = await open(t, '#/inbox')
		const card = page.locator('form', { hasText: 'Chat chat-7 wants to be paired' })
		await card.waitFor()
		await api('POST', '/v1/agents', { name: 'newcomer' })
		await card.getByLabel('Agent').selectOption('newcomer')
		await api('DELETE', '/v1/agents/newcomer')
		await card.getByLabel('Agent').selectOption('bob')
		t.strictSame(await barriersOn(page), [])
		await card.getByRole('button', { name: 'Pair' }).click()
		await card.waitFor({ state: 'detached' })
		const { bindings } = (await api('GET', `/v1/channels/${id}/bindings`)).body
		t.match(bindings, [{ agent_id: 'bob', external_chat_id: 'chat-7', who_may_answer: 'paired' }])
		await page.goto('/#/home')
		await page.locator('li.good', { hasText: /Channel .*connected/s }).waitFor()
		await api('DELETE', `/v1/channels/${id}`)
	})

	await t.test('a chat shows files, and the contents of the context', async (t) => {
		model.on(/What is on it/, 'A dot.')
		const attachments = [
			{ data: png().toString('base64'), name: 'dot.png' },
			{ data: Buffer.from('a,b\n1,2\n').toString('base64'), name: 'table.csv', media_type: 'text/csv' },
		]
		const body = { prompt: 'What is on it?', attachments, conversation: 'files' }
		await completed(gateway, (await api('POST', '/v1/agents/ada/runs', body)).body.run_id)
		const page = await open(t, '#/chat/ada/api:files')
		const picture = page.getByRole('img', { name: 'dot.png' })
		await picture.waitFor()
		const width = `(async (image) => (await image.decode(), image.naturalWidth))(document.querySelector('.picture'))`
		t.equal(await page.evaluate(width), 1)
		const saving = page.waitForEvent('download')
		await page.getByRole('button', { name: 'Save table.csv' }).click()
		const saved = await saving
		t.equal(saved.suggestedFilename(), 'table.csv')
		t.equal(readFileSync(await saved.path(), 'utf8'), 'a,b\n1,2\n')
		await page.getByText('Context', { exact: true }).click()
		await page.getByText(/About [\d,.]+ of [\d,.]+ tokens of a request to local \(qwen3\)/).waitFor()
		await page.locator('td', { hasText: '1 Turns' }).waitFor()
		t.strictSame(await barriersOn(page), [])
	})

	await t.test('a backup is taken and deleted', async (t) => {
		const page = await open(t, '#/backups')
		await page.getByText('There is no backup yet.').waitFor()
		await page.getByRole('button', { name: 'Take a backup' }).click()
		const [taken] = await eventually(
			async () => (await api('GET', '/v1/backups')).body.backups,
			(list) => list.length === 1,
		)
		await page.getByText(taken.file).waitFor()
		t.strictSame(await barriersOn(page), [])
		page.once('dialog', (dialog) => void dialog.accept())
		await page.getByRole('button', { name: `Delete the backup ${taken.id}` }).click()
		await page.getByText('There is no backup yet.').waitFor()
		t.strictSame((await api('GET', '/v1/backups')).body.backups, [])
		await page.goto('/#/home')
		await page.getByText('There is no backup yet.').waitFor()
		await page.getByText(/^ok: \d+ MiB in use, [\d,]+ MiB free/).waitFor()
	})

	await t.test('a plugin is fixed and reloaded', async (t) => {
		const page = await open(t, '#/plugins')
		const row = page.locator('tr', { hasText: 'tides' })
		await row.getByText('no such luck').waitFor()
		t.strictSame(await barriersOn(page), [])
		const file = join(gateway.home, 'plugins/tides/index.js')
		writeFileSync(file, "export default { name: 'tides', start: (ctx) => ctx.defer(() => {}, 'the gauge') }")
		await page.getByRole('button', { name: 'Reload tides' }).click()
		await row.locator('.status.running').waitFor()
		await row.getByText('resources 1').click()
		await row.getByText('the gauge').waitFor()
	})

	await t.test("a plugin adds a page, which has its reader's access", async (t) => {
		const module = `export function show(place, { get, change, follow, signal }) {
			const button = document.createElement('button')
			button.textContent = 'Measure'
			button.addEventListener('click', async () => {
				const { height } = await change('POST', '/v1/tides', {})
				place.append('It is ' + height)
			})
			place.append(button)
			follow({ event_type: 'tides.*' }, ({ payload }) => place.append('Heard ' + payload.height))
			signal.addEventListener('abort', () => { window.hasLeft = true })
			get('/v1/no-such').catch((error) => place.append('Status ' + error.status))
		}`
		const plugin = `export default {
			name: 'tides',
			start(ctx) {
				ctx.extend('console', { title: 'Tides', module: ${JSON.stringify(module)} })
				ctx.extend('console', { title: '', module: 'a second one' })
			},
			http(server, ctx) {
				server.route({ method: 'POST', path: '/v1/tides', handler: async () => {
					await ctx.emit({ event_type: 'tides.measured', payload: { height: 3.5 } })
					return { height: 3.5 }
				} })
			},
		}`
		writeFileSync(join(gateway.home, 'plugins/tides/index.js'), plugin)
		t.match((await api('POST', '/v1/plugins/tides/reload')).body, { state: 'running', last_error: null })
		const { pages } = (await api('GET', '/v1/console')).body
		t.match(pages, [{ plugin: 'tides', title: 'Tides', file: /^page-tides-[0-9a-f]{16}\.js$/ }])
		t.equal(pages.length, 1, 'an invalid page is omitted')
		const page = await open(t)
		await page.getByRole('link', { name: 'Tides', exact: true }).click()
		await page.getByRole('heading', { level: 1, name: 'Tides' }).waitFor()
		await page.getByText('Status 404').waitFor()
		await page.getByRole('button', { name: 'Measure' }).click()
		await page.getByText('It is 3.5').waitFor()
		await page.getByText('Heard 3.5').waitFor()
		await page.getByRole('link', { name: 'Vault' }).click()
		await page.waitForFunction('window.hasLeft')
		await page.goto('/#/page/no-such')
		await page.getByText('No plugin adds this page.').waitFor()
	})

	await t.test('without a cluster, its page shows the gateway', async (t) => {
		const page = await open(t, '#/cluster')
		await page.locator('.status.working').waitFor()
		await page.getByText(`process ${process.pid}`).waitFor()
	})

	await t.test('a webhook is created and tested, its secret shown once', async (t) => {
		const page = await open(t, '#/agents/bob/webhooks')
		await page.getByLabel('Name').fill('deploys')
		await page.getByRole('button', { name: 'Create' }).click()
		await page.getByText('Secret, shown only now').waitFor()
		await page.getByRole('button', { name: 'Deliver a test' }).click()
		await page.locator('td', { hasText: '200' }).waitFor()
		await page.route('**/webhooks/deploys', (route) => route.abort())
		page.once('dialog', (dialog) => void dialog.accept())
		await page.getByRole('button', { name: 'Delete' }).click()
		await page.getByRole('alert').first().waitFor()
		t.equal(await page.getByText('Secret, shown only now').count(), 1, 'still shown after a failed deletion')
		await page.reload()
		await page.getByRole('heading', { name: 'deploys' }).waitFor()
		t.equal(await page.getByText('Secret, shown only now').count(), 0)
	})

	await t.test('a token is created for one agent, and revoked', async (t) => {
		const page = await open(t, '#/tokens')
		await page.getByLabel('Name').fill('the ticket system')
		await page.getByLabel('Agents').fill('ada')
		await page.getByLabel('Runs per day').fill('100')
		await page.getByLabel('Cost per day').fill('0')
		await page.getByRole('button', { name: 'Create' }).click()
		await page
			.getByRole('alert')
			.filter({ hasText: /cost_per_day.* must be a positive number/ })
			.waitFor()
		await page.getByLabel('Cost per day').fill('2.5')
		await page.getByRole('button', { name: 'Create' }).click()
		await page.getByText(/svc_[\w-]{43}/).waitFor()
		page.once('dialog', (dialog) => void dialog.accept())
		await page.getByRole('button', { name: 'Revoke' }).click()
		await page.locator('.status.revoked').waitFor()
		t.match((await api('GET', '/v1/auth/tokens')).body.tokens, [
			{
				label: 'the ticket system',
				agents: ['ada'],
				limits: { runs_per_day: 100, cost_per_day: 2.5 },
				status: 'revoked',
			},
		])
	})

	await t.test('talks to an agent, and shows HTML and unsafe links of its Markdown as text', async (t) => {
		const page = await openChat(t, 'ada')
		await page.getByLabel('Message').fill('Tell me')
		await page.getByRole('button', { name: 'Send' }).click()
		const answer = page.locator('.said.assistant', { hasText: 'Title' })
		await answer.locator('strong', { hasText: 'bold' }).waitFor()
		t.match(await answer.innerText(), /<img src=x onerror=alert\(1\)>/)
		t.strictSame([await answer.locator('img').count(), await answer.locator('a').count()], [0, 0])
		await page.getByRole('link', { name: 'Runs', exact: true }).click()
		await page.getByRole('link', { name: 'Tell me' }).click()
		await page.locator('.timeline .message.assistant strong').waitFor()
		await page.locator('tr', { hasText: 'local/qwen3' }).waitFor()
	})

	await t.test('shows an answer that cannot be parsed as Markdown, and the rest of its conversation', async (t) => {
		const page = await openChat(t, 'bob')
		await page.getByLabel('Message').fill('Quote me')
		await page.getByRole('button', { name: 'Send' }).click()
		await page.locator('.said.assistant', { hasText: '>>>>' }).waitFor()
		await page.reload()
		await page.locator('.said.user', { hasText: 'Quote me' }).waitFor()
		await page.locator('.said.assistant', { hasText: '>>>>' }).waitFor()
	})

	await t.test('shows the rest of an answer after a reload, and the messages after an answered question', async (t) => {
		const text = 'one two three four five six seven eight nine ten'
		model.on(/Count slowly/, { text, chunkSize: 5, pauseMs: 150 })
		model.on(
			/Ask here/,
			{ tools: [{ name: 'ask', arguments: { question: 'Which?', options: ['tea'] } }] },
			'Tea it is.',
		)
		const page = await openChat(t, 'bob')
		const say = async (prompt: string): Promise<void> => {
			await page.getByLabel('Message').fill(prompt)
			await page.getByRole('button', { name: 'Send' }).click()
		}
		await say('Count slowly')
		await page.locator('.said.assistant', { hasText: 'one' }).waitFor()
		await page.reload()
		await page.locator('.said.assistant', { hasText: text }).waitFor()
		await page.getByRole('button', { name: 'Send' }).waitFor()
		t.equal(await page.locator('.said.user', { hasText: 'Count slowly' }).count(), 1)
		await page.setViewportSize({ width: 800, height: 200 })
		await api('PATCH', '/v1/agents/bob', { config: { provider: 'manual' } })
		await say('Go on')
		const call = await manual.called('Go on')
		await page.getByText('is writing').waitFor()
		const moved = await page.evaluate(`(async () => {
			const chat = document.querySelector('svc-chat')
			chat.requestUpdate()
			await chat.updateComplete
			scrollTo(0, 0)
			const nextFrame = () => new Promise(requestAnimationFrame)
			await nextFrame()
			await nextFrame()
			return scrollY
		})()`)
		t.equal(moved, 0, 'scrolling up right after an update is not undone')
		call.answer(text)
		await page.getByRole('button', { name: 'Send' }).waitFor()
		t.equal(await page.evaluate('scrollY'), 0, 'a new answer does not scroll a reader of earlier messages')
		await api('PATCH', '/v1/agents/bob', { config: { provider: 'local' } })
		const bottom = 'document.querySelector(".chat-end").getBoundingClientRect().bottom'
		const showsEnd = `${bottom} <= document.querySelector(".composer").getBoundingClientRect().top`
		await say('Ask here')
		await page.getByRole('button', { name: 'tea' }).waitFor()
		await page.waitForFunction(showsEnd)
		await page.getByRole('button', { name: 'tea' }).click()
		await page.locator('.said.assistant', { hasText: 'Tea it is.' }).waitFor()
		await page.waitForFunction(showsEnd)
	})

	await t.test('a chat shows why a run failed', async (t) => {
		model.on(/Fail here/, { status: 400, message: 'no such tone' })
		const page = await openChat(t, 'ada')
		await page.getByLabel('Message').fill('Fail here')
		await page.getByRole('button', { name: 'Send' }).click()
		const reason = page.locator('.problem', { hasText: 'no such tone' })
		await reason.waitFor()
		const isVisible = `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelector('.problem').getBoundingClientRect())`
		await page.waitForFunction(isVisible)
		await page.reload()
		await reason.waitFor()
		await page.waitForFunction(isVisible)
		t.equal(await reason.count(), 1)
	})

	await t.test('failed runs are found from Home, and started again', async (t) => {
		await api('POST', '/v1/agents', { name: 'dan' })
		for (const name of ['one', 'two', 'three']) {
			model.on(new RegExp(`Job ${name}`), { status: 400, message: 'no such key' }, 'Done.')
			const { run_id } = (await api('POST', '/v1/agents/dan/runs', { prompt: `Job ${name}`, conversation: name })).body
			await eventually(async () => (await api('GET', `/v1/runs/${run_id}`)).body.status === 'failed')
		}
		const page = await open(t)
		await page.locator('li.bad', { hasText: 'no such key' }).getByRole('link', { name: 'Failed runs' }).click()
		await page.getByLabel('Agent').selectOption('dan')
		await page.getByText('no such key').nth(2).waitFor()
		t.strictSame(await barriersOn(page), [])
		await page.getByRole('link', { name: 'Job one' }).click()
		await page.route('**/retry', (route) => route.abort())
		await page.getByRole('button', { name: 'Retry' }).press('Enter')
		await page.getByText('the gateway does not answer').waitFor()
		await page.unroute('**/retry')
		await page.getByRole('button', { name: 'Retry' }).press('Enter')
		await page.locator('h1 .status.completed').waitFor()
		t.equal(await page.getByRole('button', { name: 'Retry' }).count(), 0)

		await page.goBack()
		await page.locator('h1 .status.failed').waitFor()
		await page.goBack()
		await page.getByRole('link', { name: 'Job two' }).waitFor()
		t.equal(await page.getByLabel('Status').inputValue(), 'failed')
		const retryAll = async (): Promise<void> => {
			page.once('dialog', (dialog) => void dialog.accept())
			await page.getByRole('button', { name: 'Retry these 3' }).click()
		}
		let requests = 0
		await page.route('**/retry', (route) => (requests++ === 0 ? route.abort() : route.continue()))
		await retryAll()
		await page.getByText('the gateway does not answer').waitFor()
		t.equal(requests, 3, 'one that fails does not keep the others from starting')
		await retryAll()
		await page.locator('tbody tr .status.completed').nth(2).waitFor()
		t.equal(await page.locator('tbody tr').count(), 6, 'the run that was started again before is not started twice')
		t.equal(await page.getByLabel('Agent').inputValue(), 'dan')
		await page.goBack()
		await page.getByRole('button', { name: 'Retry these 3' }).waitFor()
		t.equal(await page.getByLabel('Status').inputValue(), 'failed')
	})

	await t.test('a failed run is found behind thousands of others', async (t) => {
		const page = await open(t)
		await page.route('**/v1/runs?*', (route) =>
			route.request().url().includes('cursor=')
				? route.continue()
				: route.fulfill({ json: { runs: [], next_cursor: 'ffffffff-ffff-7fff-bfff-ffffffffffff' } }),
		)
		await page.goto('/#/runs?status=failed')
		await page.getByText('no such key').first().waitFor()
	})

	await t.test('long names and text from right to left fit a phone', async (t) => {
		const name = 'W'.repeat(64)
		model.on(/long names/, { tools: [{ name: 'ask', arguments: { question: name, options: [name.repeat(3)] } }] })
		await api('POST', '/v1/agents', { name })
		const prompt = `שלום עולם, long names ${name}\n\n- שלום`
		const { run_id } = (await api('POST', `/v1/agents/${name}/runs`, { prompt })).body
		await eventually(async () => (await api('GET', `/v1/runs/${run_id}`)).body.open_question !== null)
		const page = await open(t)
		await page.setViewportSize({ width: 390, height: 700 })
		for (const hash of ['inbox', 'runs', `runs/${run_id}`, `chat/${name}`, `agents/${name}/webhooks`, 'channels']) {
			await page.goto(`/#/${hash}`)
			await page.getByText(name).first().waitFor({ state: 'attached' })
			t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), hash)
		}
		await page.goto(`/#/chat/${name}`)
		await page.locator('.said li').waitFor()
		t.equal(await page.evaluate('getComputedStyle(document.querySelector(".said li")).direction'), 'rtl')
		await api('DELETE', `/v1/agents/${name}`)
	})

	await t.test('follows a run from its start, answers its question, and survives a reload', async (t) => {
		await api('PATCH', '/v1/agents/bob', { config: { provider: 'offline', tools: { ask: ['memory.store'] } } })
		model.on(
			/Ask me/,
			{ tools: [{ name: 'ask', arguments: { question: 'Tea or coffee?', options: ['tea', 'coffee'] } }] },
			'Good.',
		)
		const { run_id } = (await api('POST', '/v1/agents/ada/runs', { prompt: 'Ask me' })).body
		const page = await open(t, `#/runs/${run_id}`)
		await page.getByRole('button', { name: 'coffee' }).waitFor()
		await page.reload()
		await page.getByRole('button', { name: 'coffee' }).click()
		await page.locator('.timeline li', { hasText: 'run.completed' }).waitFor()
		await page.locator('h1 .status.completed').waitFor()
		t.equal(await page.locator('.timeline li', { hasText: 'run.started' }).count(), 1, 'no event shows twice')
	})

	await t.test('a run shows its sub-agents at every depth', async (t) => {
		model.on(
			/^Delegate/,
			{ tools: [{ name: 'subagent_spawn', arguments: { prompt: 'Split it up' } }] },
			{ text: 'It is done.' },
		)
		model.on(
			/^Split it up/,
			{ tools: [{ name: 'subagent_spawn', arguments: { prompt: 'Look below' } }] },
			{ text: 'It is split.' },
		)
		model.on(/^Look below/, { text: 'Nothing there.' })
		const { run_id } = (await api('POST', '/v1/agents/ada/runs', { prompt: 'Delegate this' })).body
		const page = await open(t, `#/runs/${run_id}`)
		await page.locator('li li', { hasText: 'Look below' }).locator('.status.completed').waitFor()
		await page.locator('h1 .status.completed').waitFor()
		await page.locator('li li a', { hasText: 'Look below' }).click()
		await page.getByRole('link', { name: 'this run' }).waitFor()
	})

	await t.test('an approval can be edited in the inbox', async (t) => {
		model.on(/Remember/, { tools: [{ name: 'memory_store', arguments: { content: 'The door is green.' } }] }, 'Stored.')
		await api('PATCH', '/v1/agents/ada', { config: { tools: { ask: ['memory.store'] } } })
		const page = await open(t, '#/inbox')
		await page.getByText('Nothing needs your attention').waitFor()
		const { run_id } = (await api('POST', '/v1/agents/ada/runs', { prompt: 'Remember' })).body
		await page.getByRole('button', { name: 'Edit' }).click()
		await page.getByLabel('Arguments').fill('{"content": "The door is blue."}')
		await page.getByRole('button', { name: 'Approve as edited' }).click()
		await page.getByText('Nothing needs your attention').waitFor()
		await completed(gateway, run_id as string)
		const { memories } = (await api('GET', '/v1/agents/ada/memory')).body
		t.match(memories[0], { content: 'The door is blue.' })
	})

	await t.test('an approval shows invisible characters of its arguments', async (t) => {
		const content = 'Send it to \u202eada\ufe01\u3164'
		model.on(/Recall unseen/, { tools: [{ name: 'memory_store', arguments: { content } }] }, 'Not stored.')
		const page = await open(t, '#/inbox')
		const { run_id } = (await api('POST', '/v1/agents/ada/runs', { prompt: 'Recall unseen' })).body
		await page.locator('pre', { hasText: String.raw`Send it to \u202eada\ufe01\u3164` }).waitFor()
		await page.getByRole('button', { name: 'Refuse' }).click()
		await completed(gateway, run_id as string)
	})

	await t.test('the inbox misses no question before its event stream opens', async (t) => {
		model.on(/Keep this/, { tools: [{ name: 'memory_store', arguments: { content: 'Kept.' } }] }, 'Stored.')
		const page = await open(t)
		const held = Promise.withResolvers<void>()
		await page.route('**/v1/events/stream?*', async (route) => {
			await held.promise
			await route.continue()
		})
		const requested = page.waitForRequest('**/v1/events/stream?*')
		await page.goto('/#/inbox')
		await requested
		const { run_id } = (await api('POST', '/v1/agents/ada/runs', { prompt: 'Keep this' })).body
		await eventually(async () => (await api('GET', `/v1/runs/${run_id}`)).body.status === 'paused')
		held.resolve()
		await page.getByRole('button', { name: 'Refuse' }).click()
		await page.getByText('Nothing needs your attention').waitFor()
	})

	await t.test('text that is typed for one question does not answer another', async (t) => {
		for (const name of ['door', 'gate'])
			model.on(
				new RegExp(`Note the ${name}`),
				{ tools: [{ name: 'memory_store', arguments: { content: `The ${name} is green.` } }] },
				'Stored.',
			)
		const ask = async (name: string): Promise<string> =>
			(await api('POST', '/v1/agents/ada/runs', { prompt: `Note the ${name}`, conversation: name })).body.run_id
		const page = await open(t, '#/inbox')
		await page.getByText('Nothing needs your attention').waitFor()
		const card = (name: string) => page.locator('svc-question', { hasText: `Note the ${name}` })
		const door = await ask('door')
		await card('door').getByRole('button', { name: 'Edit' }).click()
		await card('door').getByLabel('Arguments').fill('{"content": "The door is red."}')
		await ask('gate')
		await card('gate').getByRole('button', { name: 'Edit' }).waitFor()
		await card('door').getByRole('button', { name: 'Approve as edited' }).click()
		await completed(gateway, door)
		await card('gate').getByRole('button', { name: 'Refuse' }).click()
		await page.getByText('Nothing needs your attention').waitFor()
		const { memories } = (await api('GET', '/v1/agents/ada/memory')).body
		t.match(memories[0], { content: 'The door is red.' })
	})

	await t.test('a skill is reviewed with its invisible characters, and approved', async (t) => {
		await api('POST', '/v1/agents/ada/skills/install', { content: SKILL })
		const page = await open(t, '#/inbox')
		await page.getByRole('link', { name: 'Review' }).click()
		await page.locator('pre mark', { hasText: 'U+200B' }).waitFor()
		await page.getByRole('button', { name: 'Show SKILL.md' }).click()
		await page.locator('li pre', { hasText: 'name: greeter' }).locator('mark', { hasText: 'U+200B' }).waitFor()
		await page.getByRole('button', { name: 'Approve this text' }).click()
		await page.locator('h1 .status.active').waitFor()
	})

	await t.test('a secret is stored and granted, and its value is not shown', async (t) => {
		const page = await open(t, '#/vault')
		await page.getByLabel('Name').fill('GITHUB_TOKEN')
		await page.getByLabel('Value').fill('ghp_very_secret')
		await page.getByRole('button', { name: 'Store' }).click()
		await page.getByLabel('Grant GITHUB_TOKEN to').selectOption('bob')
		await page.getByLabel('Revoke GITHUB_TOKEN from bob').waitFor()
		t.notMatch(await page.content(), /ghp_very/)
	})

	await t.test('signs in to an MCP server from the inbox, and signs out', async (t) => {
		const server = await startProtectedServer(t)
		await api('POST', '/v1/agents/ada/mcp', { name: 'issues', transport: 'http', url: server.url })
		const page = await open(t, '#/inbox')
		await page.getByRole('link', { name: 'Sign in' }).click()
		await page.getByRole('button', { name: 'Sign in' }).click()
		const [login] = await Promise.all([
			page.context().waitForEvent('page'),
			page.getByRole('link', { name: /^Continue at 127/ }).click(),
		])
		await login.getByText('can use the MCP server "issues" now').waitFor()
		t.match(new URL(login.url()).pathname, '/v1/mcp/callback')
		await login.close()
		await page.getByText(`Signed in at ${server.issuer}`).waitFor()
		t.strictSame(await barriersOn(page), [])
		await page.getByRole('button', { name: 'Sign out' }).click()
		await page.getByRole('button', { name: 'Sign in' }).waitFor()
		await api('DELETE', `/v1/agents/ada/mcp/${(await api('GET', '/v1/agents/ada/mcp')).body[0].id}`)
	})

	await t.test('accepts the changed tools of an MCP server from the inbox', async (t) => {
		const file = join(t.testdir(), 'description')
		writeFileSync(file, 'Shapes things.')
		const command = { command: process.execPath, args: [fixtures.fixture, '--file', file] }
		const { id } = (await api('POST', '/v1/agents/bob/mcp', { name: 'own', transport: 'stdio', ...command })).body
		const server = async () => (await api('GET', `/v1/agents/bob/mcp/${id}`)).body
		await eventually(async () => (await server()).status === 'connected')
		writeFileSync(file, 'Sends secrets.')
		await api('POST', `/v1/agents/bob/mcp/${id}/restart`)
		const page = await open(t, '#/inbox')
		await page.getByRole('heading', { name: 'Changed tools of own' }).waitFor()
		await page.getByRole('link', { name: 'Review' }).click()
		await page.locator('pre', { hasText: '"description": "Shapes things."' }).waitFor()
		await page.locator('pre', { hasText: '"description": "Sends secrets."' }).waitFor()
		t.strictSame(await barriersOn(page), [])
		// It changes again, and the page shows the earlier change.
		const list = '**/v1/agents/bob/mcp'
		await page.route(list, (route) => route.abort())
		writeFileSync(file, 'Sends secrets\ufe01 elsewhere.')
		await api('POST', `/v1/agents/bob/mcp/${id}/restart`)
		const heldText = async () => (await server()).tools.find((tool: { held: boolean }) => tool.held)?.description
		await eventually(async () => /elsewhere/.test(await heldText()))
		const accept = page.getByRole('button', { name: 'Accept these changes' })
		const answered = page.waitForResponse('**/accept')
		await accept.click()
		t.equal((await answered).status(), 409)
		t.match(await heldText(), /elsewhere/, 'a change that was not shown is not accepted')
		await page.unroute(list)
		await page.reload()
		await page.locator('pre', { hasText: String.raw`"Sends secrets\ufe01 elsewhere."` }).waitFor()
		await accept.click()
		await eventually(async () => !(await api('GET', '/v1/agents/bob/mcp')).body[0].held_tools)
		t.match(JSON.stringify((await server()).tools), /Sends secrets/)
		await api('DELETE', `/v1/agents/bob/mcp/${id}`)
	})

	await t.test('a provider is set up with a test call', async (t) => {
		const page = await open(t, '#/models')
		await page.getByLabel('Name', { exact: true }).fill('second')
		await page.getByLabel('Address of the API').fill(model.url)
		await page.getByLabel('Model', { exact: true }).fill('qwen3')
		await page.getByRole('button', { name: 'Test call' }).click()
		await page.getByText('The model answers').waitFor()
		await page.getByRole('button', { name: 'Save and use' }).click()
		await page.locator('tr', { hasText: 'second' }).getByText('default').waitFor()
		t.match((await api('GET', '/v1/providers')).body.at(-1), { name: 'second', is_default: true })
	})

	await t.test('a mistake in the configuration is shown with its line, and fixed', async (t) => {
		const page = await open(t, '#/config')
		const field = page.getByLabel('gateway.yaml')
		const before = await field.inputValue()
		await field.fill(`${before}servre: {}\n`)
		await page.getByRole('button', { name: 'Apply' }).click()
		await page
			.locator('.problem', { hasText: 'servre' })
			.getByRole('button', { name: /^Line \d+$/ })
			.click()
		t.match(await page.evaluate('String(getSelection())'), 'servre: {}')
		await field.fill(`${before}server: {shutdown_grace_s: 21}\n`)
		await page.getByRole('button', { name: 'Apply' }).click()
		await page.getByText('Applied.').waitFor()
		t.match(readFileSync(join(gateway.home, 'config/gateway.yaml'), 'utf8'), /shutdown_grace_s: 21/)
	})

	await t.test('an agent is found among many', async (t) => {
		const page = await newPage(t, gateway)
		const created_at = new Date().toISOString()
		const agents = Array.from({ length: 120 }, (_, n) => ({ name: `Agent-${n}`, created_at }))
		await page.route('**/v1/agents', (route) => route.fulfill({ json: agents }))
		await page.goto('/#/agents')
		await page.getByText('the first 50 of 120 agents').waitFor()
		t.equal(await page.locator('tbody tr').count(), 50)
		await page.getByLabel('Part of a name').fill('agent-11')
		await page.getByText('11 of 120 agents').waitFor()
		await page.getByRole('link', { name: 'Agent-119' }).waitFor()
	})

	await t.test('an agent is created and changed', async (t) => {
		const page = await open(t, '#/agents')
		await page.getByLabel('Name').fill('carol')
		await page.getByRole('button', { name: 'Create' }).click()
		await page.getByRole('heading', { level: 1, name: 'carol' }).waitFor()
		await page.getByLabel('Configuration').fill('{"limits": {"steps": 7}}')
		await page.getByRole('button', { name: 'Save' }).click()
		await page.getByText('Saved.').waitFor()
		t.match((await api('GET', '/v1/agents/carol')).body.config, { limits: { steps: 7 } })
	})
	t.strictSame(problems, [], 'no script failed or was blocked')
})

void t.test('the console in token mode', { skip: noBrowser }, async (t) => {
	const gateway = await startGateway({ config: 'auth_mode: token\n' })
	t.teardown(() => gateway.stop())
	const { token } = await addToken(gateway, ['*'])
	const page = await newPage(t, gateway)
	const urls: string[] = []
	page.on('request', (request) => urls.push(request.url()))
	await page.goto('/#/agents')
	await page.getByLabel('Token').fill('svc_wrong')
	await page.getByRole('button', { name: 'Sign in' }).click()
	await page.getByText('The gateway refuses this token.').waitFor()
	await page.getByLabel('Token').fill(token as string)
	await page.getByRole('button', { name: 'Sign in' }).click()
	await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor()
	await page.reload()
	await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor()
	t.notOk(
		urls.some((url) => url.includes(token as string)),
		'no request has the token in its address',
	)
	t.notOk(page.url().includes(token as string))

	const headers = { authorization: `Bearer ${token}` }
	const create = (scopes: string[]) => gateway.request('POST', '/v1/auth/tokens', { headers, body: { scopes } })
	const { body: second } = await create(['*'])
	await gateway.request('POST', '/v1/agents', { headers, body: { name: 'ada' } })
	await page.evaluate((text) => sessionStorage.setItem('svc-token', text), second.token as string)
	await page.goto('/#/chat/ada')
	await page.getByLabel('Message').fill('Hello')
	t.equal((await gateway.request('DELETE', `/v1/auth/tokens/${second.id}`, { headers })).status, 200)
	await page.getByRole('button', { name: 'Send' }).click()
	await page.getByLabel('Token').fill(token as string)
	await page.getByRole('button', { name: 'Sign in' }).click()
	await page.waitForFunction('document.querySelector("textarea")?.value === "Hello"')
})

void t.test('the console of a gateway without skills, tool servers and channels', { skip: noBrowser }, async (t) => {
	const gateway = await startGateway({
		config: 'plugins: {skills: false, mcp: false, channels: false, telegram: false, discord: false}\n',
	})
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada', persona: 'You count.' } })
	const page = await newPage(t, gateway)
	await page.goto('/#/inbox')
	await page.getByText('Nothing needs your attention').waitFor()
	await page.goto('/#/agents/ada')
	t.equal(await page.getByLabel('Persona').inputValue(), 'You count.')
	t.equal(await page.locator('.problem').count(), 0)
})

async function completed({ url }: TestGateway, run_id: string): Promise<void> {
	const stream = await openStream(url, { query: { run_id, last_event_id: '0' } })
	await stream.waitFor('run.completed')
	stream.close()
}
