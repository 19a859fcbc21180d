/** svc chat on a pseudo-terminal. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { testFolder } from '../../../support/folder.ts'
import { startGateway } from '../../../support/gateway.ts'
import { startManualModel } from '../../../support/manual-model.ts'
import { openTerminal } from '../../../support/terminal.ts'
import type { TerminalProgram } from '../../../support/terminal.ts'

const svcFile = fileURLToPath(new URL('../../../../core/svc.mjs', import.meta.url))
const model = await startManualModel()
t.teardown(() => model.stop())
const gateway = await startGateway({
	config: `
providers:
  held: {kind: openai, base_url: "${model.url}", model: held}
default_provider: held
`,
})
t.teardown(() => gateway.stop())

interface ChatOptions {
	home?: string
	columns?: number
	env?: Record<string, string>
	flags?: string[]
}

async function chat(t: Test, agent: string, options: ChatOptions = {}): Promise<TerminalProgram> {
	const { home = testFolder(t), columns, env = {}, flags = [] } = options
	if ((await gateway.request('GET', `/v1/agents/${agent}`)).status === 404)
		await gateway.request('POST', '/v1/agents', { body: { name: agent } })
	const terminal = openTerminal(process.execPath, [svcFile, 'chat', agent, ...flags], {
		cwd: home,
		env: { PATH: process.env.PATH ?? '', HOME: home, SVC_HOME: gateway.home, ...env },
		...(columns !== undefined && { columns }),
	})
	t.teardown(() => terminal.kill())
	await terminal.shows(/^> $|^>$/m)
	return terminal
}

async function prompts(agent: string): Promise<string[]> {
	return (await gateway.request('GET', `/v1/agents/${agent}/runs`)).body.map((run: { prompt: string }) => run.prompt)
}

const paste = (text: string): string => `\x1b[200~${text.replaceAll('\n', '\r')}\x1b[201~`

void t.test('pasted lines are one prompt, which is sent by Enter', async (t) => {
	const terminal = await chat(t, 'paste')
	t.match(terminal.written(), '\x1b[?2004h', 'bracketed paste is switched on')
	terminal.type(paste('def f():\n\treturn 1\n/new\n'))
	await terminal.shows('/new⏎')
	terminal.type('What is wrong?\r')
	const call = await model.called('def f():\n    return 1\n/new\nWhat is wrong?')
	call.answer('nothing.')
	await terminal.shows('tokens in')
	terminal.type('/quit\r')
	t.equal(await terminal.ended, 0)
	t.equal(
		terminal.written().split('\x1b[?2004h').length,
		terminal.written().split('\x1b[?2004l').length,
		'bracketed paste is switched off at the end',
	)
	t.strictSame(await prompts('paste'), ['def f():\n    return 1\n/new\nWhat is wrong?'])
})

void t.test('pasted lines are one prompt on a terminal without bracketed paste', async (t) => {
	const terminal = await chat(t, 'plain-paste')
	terminal.type('one\rtwo\rthree\r')
	const call = await model.called('one\ntwo\nthree')
	call.answer('done.')
	await terminal.shows('tokens in')
	terminal.type('/exit\r')
	t.equal(await terminal.ended, 0)
	t.equal((await prompts('plain-paste')).length, 1)
})

void t.test('lines that are pasted during an answer are one prompt', async (t) => {
	const terminal = await chat(t, 'ahead')
	terminal.type('first\r')
	const first = await model.called('first')
	await terminal.shows('Well,')
	terminal.type('second\rthird\r')
	await terminal.shows('will be sent after this answer')
	first.answer('done.')
	const next = await model.called('second\nthird')
	next.answer('too.')
	await terminal.shows('too.')
	terminal.type('/quit\r')
	t.equal(await terminal.ended, 0)
})

void t.test('a backslash at the end of a line and Alt-Enter continue a prompt', async (t) => {
	const terminal = await chat(t, 'lines')
	terminal.type('four\\\r')
	await terminal.shows('…')
	terminal.type('five')
	terminal.type('\x1b\r')
	await terminal.shows('five⏎')
	terminal.type('six\r')
	;(await model.called('four\nfive\nsix')).answer('ok.')
	await terminal.shows(/tokens in.*\n> *$/)
	terminal.type('\x04')
	t.equal(await terminal.ended, 0)
})

void t.test('the next chat has the history, which is stored in a private file', async (t) => {
	const home = testFolder(t)
	const first = await chat(t, 'history', { home })
	first.type(paste('remember\nthis'))
	first.type('\r')
	;(await model.called('remember\nthis')).answer('yes.')
	await first.shows('tokens in')
	first.type('/quit\r')
	await first.ended
	const file = join(home, '.local/state/svc/chat-history')
	t.equal(statSync(file).mode & 0o777, 0o600)
	t.equal(readFileSync(file, 'utf8'), '"remember\\nthis"\n"/quit"\n')

	const second = await chat(t, 'history', { home })
	second.type('\x1b[A')
	await second.shows('> /quit')
	second.type('\x1b[A')
	await second.shows('> remember⏎this')
	second.type('\r')
	;(await model.called('remember\nthis', 2)).answer('yes.')
	await second.shows('tokens in')
	second.type('/quit\r')
	await second.ended

	const third = await chat(t, 'history', { home, flags: ['--no-history'] })
	third.type('\x1b[Athird\r')
	;(await model.called('third')).answer('yes.')
	await third.shows('tokens in')
	third.type('/quit\r')
	await third.ended
	t.notMatch(readFileSync(file, 'utf8'), 'third')
})

void t.test('a spinner is shown until the first word; ids are not shown', async (t) => {
	const terminal = await chat(t, 'spinner')
	const ahead = model.calls.length
	terminal.type('/tool ignored by this model\r')
	await terminal.shows(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] thinking …/)
	const call = await model.called('/tool ignored by this model')
	t.equal(model.calls.length, ahead + 1)
	call.say('it is done ')
	await terminal.shows('Well, it is')
	t.notMatch(terminal.screen(), /thinking|[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/)
	call.answer('now.')
	await terminal.shows('tokens in')
	t.equal(terminal.screen().split('Well, it is done now.').length, 2, 'the answer is shown once')
	t.notMatch(terminal.written(), /[0-9a-f]{8}-[0-9a-f]{4}-/)
	terminal.type('/quit\r')
	t.equal(await terminal.ended, 0)
})

void t.test('Ctrl-C clears typed text, stops an answer, and exits at an empty prompt', async (t) => {
	const terminal = await chat(t, 'keys')
	terminal.type('never sent')
	await terminal.shows('never sent')
	terminal.type('\x03')
	terminal.type('slowly\r')
	const call = await model.called('slowly')
	await terminal.shows('Well,')
	terminal.type('\x03')
	await call.hungUp
	await terminal.shows(/\(stopped\)\n> *$/)
	terminal.type('\x03')
	t.equal(await terminal.ended, 0)
	t.strictSame(await prompts('keys'), ['slowly'])
})

void t.test('--ids shows the ids of runs', async (t) => {
	const terminal = await chat(t, 'ids', { flags: ['--ids'] })
	terminal.type('name it\r')
	;(await model.called('name it')).answer('done.')
	await terminal.shows(/run [0-9a-f]{8}-[0-9a-f]{4}-/)
	terminal.type('/help\r')
	await terminal.shows('/quit   leave')
	terminal.type('/quit\r')
	t.equal(await terminal.ended, 0)
})

const answer = [
	'here is **the plan** for `npm test`:\n\n',
	'# Steps\n\n1. Read _all_ of the contract, which is rather long, word for word.\n2. Write:\n\n   ```js\n   const a = 1 * 2 * 3\n   ```\n',
	'\n- a [link](https://example.com)\n- \x1b[31mred\x1b[0m and \x1b]0;title\x07\n\n',
	'| Name | Value |\n|---|---|\n| a | 1 |\n\nDone.',
]

void t.test('Markdown is rendered in 40 columns, piece by piece, and shown once', async (t) => {
	const terminal = await chat(t, 'markdown', { columns: 40 })
	terminal.type('markdown please\r')
	const call = await model.called('markdown please')
	call.say('here is **the plan** for `npm ')
	await terminal.shows('Well, here is the plan for')
	t.strictSame(terminal.styleOf('the plan'), { bold: true, italic: false, colour: false })
	t.notMatch(terminal.screen(), 'npm', 'code is shown once it is complete')
	const rest = answer.join('').slice('here is **the plan** for `npm '.length)
	for (const character of rest.slice(0, -5)) call.say(character)
	call.answer(rest.slice(-5))
	await terminal.shows('tokens in')
	const screen = terminal.screen()
	const shown = screen.slice(screen.indexOf('Well,'), screen.indexOf('\n  ('))
	t.equal(
		shown,
		String.raw`Well, here is the plan for npm test:

Steps

1. Read all of the contract, which is
   rather long, word for word.
2. Write:
   const a = 1 * 2 * 3

• a link (https://example.com)
• \x1b[31mred\x1b[0m and
  \x1b]0;title\x07

Name  Value
a     1

Done.`,
	)
	t.match(terminal.styleOf('npm test'), { colour: true })
	t.match(terminal.styleOf('Steps'), { bold: true })
	t.match(terminal.styleOf('all of'), { italic: true })
	terminal.type('/quit\r')
	t.equal(await terminal.ended, 0)
})

void t.test('Markdown is shown unchanged with NO_COLOR', async (t) => {
	const terminal = await chat(t, 'raw', { env: { NO_COLOR: '1' } })
	terminal.type('raw please\r')
	;(await model.called('raw please')).answer('**bold** and \x1b[2J')
	await terminal.shows(String.raw`Well, **bold** and \x1b[2J`)
	terminal.type('/quit\r')
	t.equal(await terminal.ended, 0)
})
