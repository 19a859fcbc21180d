/** The generated files are current, and the reference pages are complete. */
import t from 'tap'
import { allKeys } from '../../core/host/config.ts'
import { subcommandsOf, wholeProgram } from '../../docs/make/help.ts'
import { generatedFiles, textAt } from '../../docs/make.ts'
import { serverUrls } from '../../sandbox/provider-kinds.ts'
import { builtInTypes } from '../support/documented.ts'
import { inlineOf, problemIn } from './svc-words.ts'
import { blocksOf } from './page.ts'
import { pages, root } from './pages.ts'

void t.test('generated files are current', async (t) => {
	for (const [path, text] of Object.entries(await generatedFiles()))
		t.ok(textAt(path) === text, `${path} is not current; run npm run docs`)
})

void t.test('every setting is listed', async (t) => {
	const page = textAt('docs/configuration.md')
	for (const key of allKeys()) t.ok(page.includes(`| \`${key}\` |`), key)
})

void t.test('every event type has a heading', async (t) => {
	const page = textAt('docs/events.md')
	for (const type of builtInTypes.keys()) t.ok(page.includes(`### ${type}\n`), type)
})

void t.test('every kind of provider is listed', async (t) => {
	const page = textAt('docs/models.md')
	for (const kind of [...Object.keys(serverUrls), 'offline']) t.ok(page.includes(`\n| \`${kind}\` |`), kind)
})

void t.test('every command of svc is listed', async (t) => {
	const page = textAt('docs/command-line.md')
	for (const command of (await wholeProgram()).commands) {
		t.ok(page.includes(`### svc ${command.name()}\n`), command.name())
		for (const inner of subcommandsOf(command))
			t.ok(page.includes(`\n  ${inner.name()} `), `${command.name()} ${inner.name()}`)
	}
})

void t.test('commands that a text or a help page mentions are valid', async (t) => {
	const program = await wholeProgram()
	let found = 0
	for (const page of pages) {
		const text = new URL(page, root)
		for (const { line, attributes, text: help } of blocksOf(text)) {
			if (attributes.of !== 'help') continue
			const [, examples = ''] = help.split(/^Examples:$/m)
			for (const words of examples.split('\n').map((one) => one.replace(/ {3,}\S.*$/, ''))) {
				if (!/\bsvc /.test(words)) continue
				found++
				t.equal(problemIn(words, program), '', `${page}:${line}: ${words}`)
			}
		}
		for (const words of inlineOf(text)) {
			found++
			t.equal(problemIn(words, program), '', `${page}: ${words}`)
		}
	}
	t.ok(found > 100, `${found} commands`)
})
