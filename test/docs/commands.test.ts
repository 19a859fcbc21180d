/** Every command of README and docs, done by a reader who follows each page from its top. DOCS_PAGE: of that page only. */
import t from 'tap'
import { blocksOf, shells, stepsOf } from './page.ts'
import { pages, root } from './pages.ts'
import { gatewayHere, gatewayToStart } from './place.ts'
import { Reader } from './reader.ts'

/** What a test has not got; a page that needs something else would go by without being tried. */
const known = new Set([
	'package',
	'another-gateway',
	'caddy',
	'claude',
	'clone',
	'cluster',
	'container-engine',
	'mcp-server',
	'mcporter',
	'nginx',
	'systemd',
])

void t.test('each page works from its top', { jobs: 3 }, async (t) => {
	for (const page of pages.filter((one) => one.includes(process.env.DOCS_PAGE ?? ''))) {
		const steps = stepsOf(new URL(page, root))
		const elsewhere = steps.filter((step) => step.kind === 'elsewhere')
		if (steps.length === elsewhere.length) continue
		void t.test(page, { buffered: true }, async (t) => {
			const startsItself = steps.some(({ kind, text }) => kind !== 'elsewhere' && /^npm start$/m.test(text))
			await using reader = new Reader(startsItself ? gatewayToStart() : await gatewayHere())
			// The page that all begin with is followed to the letter until a first run has ended.
			let isSlow = startsItself
			if (!isSlow) await reader.hurry()
			for (const step of steps) {
				if (step.kind === 'elsewhere') continue
				const { code, output } = await reader.follow(step)
				if (isSlow && /^svc run /m.test(step.text)) {
					await reader.hurry()
					isSlow = false
				}
				t.equal(code, 0, `${page}:${step.line}`, { output, command: step.text })
				// Later steps build on it.
				if (code !== 0) break
			}
			t.strictSame(await reader.end(), [], 'what ran in the second terminal')
		})
	}
})

void t.test('what is not tried is little, and says why', async (t) => {
	for (const page of pages) {
		for (const step of stepsOf(new URL(page, root))) {
			if (step.kind !== 'elsewhere') continue
			t.comment(`${page}:${step.line} needs ${step.why}`)
			t.ok(known.has(step.why), `${page}:${step.line} needs=${step.why}`)
		}
	}
})

void t.test('no command stands where nobody tries it', async (t) => {
	for (const page of pages) {
		for (const { line, language, said, text } of blocksOf(new URL(page, root))) {
			if (shells.has(language) || said.file !== undefined || said.needs !== undefined || said.of === 'help') continue
			t.notMatch(text, /^\s*(\$ |svc |npx |npm |curl |node )/m, `${page}:${line} is not marked as sh`)
		}
	}
})
