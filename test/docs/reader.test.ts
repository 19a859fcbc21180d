/** The reader that executes the pages detects errors. */
import t from 'tap'
import { wholeProgram } from '../../docs/make/help.ts'
import { blocksOf, stepsOf } from './page.ts'
import { gatewayHere } from './place.ts'
import { Reader } from './reader.ts'
import { problemIn } from './svc-words.ts'

void t.test('a page is parsed into steps', async (t) => {
	const file = t.testdir({
		'page.md': [
			'text',
			'```sh types=abc answers=yes',
			'svc one',
			'```',
			'- list',
			'  ```sh',
			'  svc two',
			'  ```',
			'````markdown file=a/SKILL.md',
			'```js',
			'```',
			'````',
			'```sh needs=systemd',
			'three',
			'```',
			'```json',
			'{}',
			'```',
		].join('\n'),
		'open.md': '```sh\nsvc one\n',
	})
	t.strictSame(stepsOf(`${file}/page.md`), [
		{ kind: 'command', line: 2, text: 'svc one', types: 'abc', answers: 'yes' },
		{ kind: 'command', line: 6, text: 'svc two' },
		{ kind: 'file', line: 9, path: 'a/SKILL.md', text: '```js\n```\n' },
		{ kind: 'elsewhere', line: 13, needs: 'systemd', text: 'three' },
	])
	t.equal(blocksOf(`${file}/page.md`).length, 5)
	t.throws(() => stepsOf(`${file}/open.md`), /the fence is not closed/)
})

void t.test('the reader fills in values, answers prompts, and reports failures', async (t) => {
	await using reader = new Reader(await gatewayHere())
	const follow = (text: string, input: { types?: string; answers?: string } = {}) =>
		reader.follow({ kind: 'command', line: 1, text, ...input })

	t.match(await follow('svc agents creat ada'), { code: 2 })
	t.match(await follow('curl -s http://127.0.0.1:3000/v1/agents/nobody'), { code: 22, output: /not_found/ })
	t.match(await follow('svc runs show RUN_ID'), { code: 1, output: /has a value for RUN_ID/ })
	t.match(await follow('false | true'), { code: 1 })

	t.match(await follow('svc agents create ada'), { code: 0 })
	t.match(await follow('svc agents delete ada'), { code: 2 }, 'without an answer to the confirmation')
	t.match(await follow('svc vault set PIN', { types: '12345678' }), { code: 0 })
	t.match(await follow('svc run ada hello --detach --json\nsvc runs follow RUN_ID\nsvc runs show RUN_ID'), { code: 0 })
	t.match(await follow('svc agents delete ada', { answers: 'yes' }), { code: 0 })

	await follow('curl -N http://127.0.0.1:3000/v1/nothing')
	await reader.idle()
	t.match(await reader.end(), [/curl -N/], 'a failure in the second terminal')
	await follow('curl -sN http://127.0.0.1:3000/v1/events/stream')
	t.strictSame(await reader.end(), [])
})

void t.test('an address that contains the port of a page is not changed', async (t) => {
	await using reader = new Reader({ ...(await gatewayHere()), url: 'http://127.0.0.1:37007' })
	const { output } = await reader.follow({ kind: 'command', line: 1, text: 'echo http://127.0.0.1:3000/v1 7007' })
	t.match(output, /^http:\/\/127\.0\.0\.1:37007\/v1 [0-9]+\n$/)
	t.notMatch(output, / 7007\n/, 'the port of the page is replaced')
})

void t.test('a command that a text only mentions is validated', async (t) => {
	const program = await wholeProgram()
	for (const valid of [
		'svc agents',
		'svc run ada "Hello --there"',
		'git diff | svc run ada - > a',
		'svc mcp add a b -- npx -y c',
	])
		t.equal(problemIn(valid, program), '', valid)
	t.equal(problemIn('svc agnts list', program), 'there is no svc agnts')
	t.equal(problemIn('svc agents creat ada', program), 'there is no agents creat')
	t.equal(problemIn('svc runs list ada --stat failed', program), 'list has no option --stat')
})
