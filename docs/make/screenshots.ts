/**
 * Makes the pictures of the console in docs/images, with Debian's Chromium: `node docs/make/screenshots.ts`. The gateway is a real
 * one with a temporary home; its agents use the built-in offline model.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { boot } from '../../core/boot.ts'

const folder = fileURLToPath(new URL('../images/', import.meta.url))
const viewport = { width: 1100, height: 620 }
/** By the name of the picture; `RUN` is replaced by the id of a run. */
const pages = { inbox: '#/inbox', run: '#/runs/RUN', chat: '#/chat/ada' }

const home = mkdtempSync(join(tmpdir(), 'svc-pictures-'))
const env = { ...process.env, SVC_PORT: '0', SVC_LEGACY_PORT: '0', SVC_LOG_LEVEL: 'silent' }
const { gateway, stop } = await boot({ home, env })
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' })
try {
	const url = gateway.status.url('main') ?? ''
	const run = await fill(url)
	mkdirSync(folder, { recursive: true })
	for (const [name, hash] of Object.entries(pages)) {
		const page = await browser.newPage({ viewport, colorScheme: 'light', locale: 'en-GB' })
		await page.goto(`${url}/${hash.replace('RUN', run)}`)
		await page.locator('main h1').waitFor()
		await page.waitForLoadState('networkidle').catch(() => {}) // a stream stays open
		await page.screenshot({ path: join(folder, `console-${name}.png`) })
		await page.close()
	}
} finally {
	await browser.close()
	await stop()
	rmSync(home, { recursive: true, force: true })
}

/** Agents with a few runs, a question and a new skill. Returns the id of a run. */
async function fill(url: string): Promise<string> {
	const send = async (path: string, body: object): Promise<Record<string, string>> => {
		const headers = { 'content-type': 'application/json' }
		// oxlint-disable-next-line no-restricted-globals -- the address is our own
		const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
		return (await response.json()) as Record<string, string>
	}
	for (const name of ['ada', 'grace']) await send('/v1/agents', { name, persona: 'You are a careful librarian.' })
	await send('/v1/agents/ada/memory', { content: 'The reader Grace Bell prefers large print.' })
	const prompt = 'Which print does Grace Bell prefer?'
	const { run_id = '' } = await send('/v1/agents/ada/runs', {
		prompt: `${prompt}\n/tool memory.recall {"query": "Grace Bell print"}`,
	})
	await send('/v1/agents/ada/runs', { prompt: '/tool memory.stm_write {"key": "reader", "value": "Grace Bell"}' })
	const question = { question: 'Which edition should I order?', options: ['large print', 'standard'] }
	await send('/v1/agents/grace/runs', { prompt: `/tool ask ${JSON.stringify(question)}` })
	const description = 'Turns the notes of a meeting into decisions and tasks.'
	await send('/v1/agents/ada/skills/install', {
		content: `---\nname: meeting-notes\ndescription: ${description}\n---\nRead the notes. Answer with two lists.\n`,
	})
	return run_id
}
