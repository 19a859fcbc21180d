/** Executes the commands of README and docs, each page from its top. DOCS_PAGE limits it to one page. */
import t from 'tap'
import { blocksOf, shells, stepsOf } from './page.ts'
import { pages, root } from './pages.ts'
import { gatewayHere, gatewayToStart } from './place.ts'
import { Reader } from './reader.ts'

/** Requirements that a test cannot fulfil. Others are errors, since their commands would never be executed. */
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
			// The page that users read first is executed exactly as written until the first run has ended.
			let isExact = startsItself
			if (!isExact) await reader.runSvcHere()
			for (const step of steps) {
				if (step.kind === 'elsewhere') continue
				const { code, output } = await reader.follow(step)
				if (isExact && /^svc run /m.test(step.text)) {
					await reader.runSvcHere()
					isExact = false
				}
				t.equal(code, 0, `${page}:${step.line}`, { output, command: step.text })
				// Later steps depend on it.
				if (code !== 0) break
			}
			t.strictSame(await reader.end(), [], 'no command in the second terminal failed')
		})
	}
})

void t.test('every command that is not executed states a known reason', async (t) => {
	for (const page of pages) {
		for (const step of stepsOf(new URL(page, root))) {
			if (step.kind !== 'elsewhere') continue
			t.comment(`${page}:${step.line} needs ${step.needs}`)
			t.ok(known.has(step.needs), `${page}:${step.line} needs=${step.needs}`)
		}
	}
})

void t.test('every command is in a block that is executed', async (t) => {
	for (const page of pages) {
		for (const { line, language, attributes, text } of blocksOf(new URL(page, root))) {
			const { file, needs, of } = attributes
			if (shells.has(language) || file !== undefined || needs !== undefined || of === 'help') continue
			t.notMatch(text, /^\s*(\$ |svc |npx |npm |curl |node )/m, `${page}:${line} is not marked as sh`)
		}
	}
})
