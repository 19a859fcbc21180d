/** The console during a restart of the gateway in the middle of a run: it shows the restart, and continues without gap or repeat. */
import t from 'tap'
import { freePort } from '../support/free-ports.ts'
import { makeHome, startGateway } from '../support/gateway.ts'
import { startModelServer } from '../support/model-server.ts'
import { noBrowser, startBrowser } from './chromium.ts'

void t.test('a run is followed through a restart', { skip: noBrowser }, async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	model.on(
		/Go on/,
		{ tools: [{ name: 'memory_stm_write', arguments: { key: 'a', value: 1 } }] },
		{ tools: [{ name: 'ask', arguments: { question: 'Which?', options: ['tea'] } }] },
		'Tea it is.',
	)
	const provider = `{kind: openai, base_url: "${model.url}", model: qwen3}`
	const home = makeHome({ config: `providers: {local: ${provider}}\ndefault_provider: local\n` }, t)
	const env = { SVC_PORT: String(await freePort()) }
	let gateway = await startGateway({ home, env })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const { run_id } = (await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: 'Go on' } })).body

	const browser = await startBrowser([])
	t.teardown(() => browser.close())
	const page = await browser.newPage({ baseURL: gateway.url })
	await page.goto(`/#/runs/${run_id}`)
	const question = page.getByRole('button', { name: 'tea' })
	await question.waitFor()
	const chat = await browser.newPage({ baseURL: gateway.url })
	await chat.goto('/#/chat/ada')
	await chat.getByLabel('Message').fill('Half a message')
	// Lost if the page is reloaded.
	await page.evaluate('window.isSamePage = true')

	await gateway.stop()
	const banner = page.getByText('The gateway does not answer.')
	await banner.waitFor()
	await chat.getByText('The gateway does not answer.').waitFor()
	t.ok(await page.getByText('Which?').first().isVisible(), 'the last state is still shown')
	gateway = await startGateway({ home, env })
	await banner.waitFor({ state: 'detached' })
	await chat.getByText('The gateway does not answer.').waitFor({ state: 'detached' })
	await chat.waitForFunction('document.querySelector("textarea")?.value === "Half a message"')

	await question.click()
	await page.locator('h1 .status.completed').waitFor()
	await page.locator('.timeline li', { hasText: 'Tea it is.' }).waitFor()
	const shown = await page.locator('.timeline > li > b').allTextContents()
	const { events } = (await gateway.request('GET', `/v1/audit?run_id=${run_id}&limit=200`)).body
	const types: string[] = events.map((event: { event_type: string }) => event.event_type)
	for (const type of ['run.started', 'run.paused', 'run.completed', 'primitive.called']) {
		const count = types.filter((one) => one === type).length
		t.ok(count > 0)
		t.equal(shown.filter((one) => one === type).length, count, `${type} is shown once per event`)
	}
	t.equal(await page.evaluate('window.isSamePage'), true, 'the page was not reloaded')
})

void t.test('the console of an older version is replaced by the current one', { skip: noBrowser }, async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const browser = await startBrowser([])
	t.teardown(() => browser.close())
	const page = await browser.newPage({ baseURL: gateway.url })
	// As the gateway served it before an upgrade: its first page is loaded, its other files have other names now.
	await page.route(
		'/',
		async (route) => {
			const body = await (await route.fetch()).text()
			await route.fulfill({ contentType: 'text/html', body: body.replace(/app-\w+\.js/, 'app-OLDER.js') })
		},
		{ times: 1 },
	)
	await page.route('/console/app-OLDER.js', async (route) => {
		const [current = ''] =
			/app-\w+\.js/.exec(await (await fetch(`${gateway.url}/`, { headers: { accept: 'text/html' } })).text()) ?? []
		const text = await (await fetch(`${gateway.url}/console/${current}`)).text()
		await route.fulfill({ contentType: 'text/javascript', body: text.replaceAll(/\bruns-\w+\.js/g, 'runs-OLDER.js') })
	})
	await page.goto('/')
	await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
	await page.evaluate('window.isSamePage = true')
	await page.getByRole('link', { name: 'Runs' }).first().click()
	await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor()
	t.not(await page.evaluate('window.isSamePage'), true, 'the page was reloaded')
	t.equal(await page.getByText('The gateway does not answer.').count(), 0)

	await page.goto('/#/runs/gone')
	await page.getByText('there is no run "gone"').waitFor()
	t.equal(await page.getByText('Loading').count(), 0)
})
