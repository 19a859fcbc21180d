import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { openRedactor } from '../../core/redactor.ts'
import type { Redaction, Redactor } from '../../core/redactor.ts'
import { fillerAt } from '../../core/redactor/filler.ts'
import { Matcher } from '../../core/redactor/matcher.ts'
import { Tree } from '../../core/redactor/tree.ts'
import type { Node } from '../../core/redactor/tree.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 120)
const value = 'sk-Live/9f+Q2 &x"Z\\é=='
const mark = '[redacted:KEY]'

function knowing(...values: string[]): Redactor {
	const redactor = openRedactor()
	for (const [at, one] of values.entries()) {
		const name = at === 0 ? 'KEY' : `KEY${at + 1}`
		if (!redactor.add({ id: `id-${at + 1}`, name, value: one })) throw new Error(`${one} is not looked for`)
	}
	return redactor
}

/** Values that are looked for: 8 characters and more without white space around them, and nothing that reads like a mark. */
const secret = fc
	.string({ unit: 'grapheme', minLength: 8, maxLength: 60 })
	.filter(
		(one) =>
			one.trim() === one &&
			one.length >= 8 &&
			!/[[\]]/.test(one) &&
			openRedactor().add({ id: 'a', name: 'A', value: one }),
	)
const anyText = fc.string({ unit: 'grapheme', maxLength: 40 })

const json = (text: string): string => JSON.stringify(text).slice(1, -1)
const percent = (text: string): string =>
	[...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')

const spellings: Record<string, (text: string) => string> = {
	plain: (text) => text,
	'lower case': (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
	'upper case': (text) => text.replace(/[a-z]/g, (letter) => letter.toUpperCase()),
	JSON: json,
	'JSON in JSON': (text) => json(json(text)),
	'JSON in JSON in JSON': (text) => json(json(json(text))),
	'JSON of ASCII': (text) =>
		json(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
	HTML: (text) =>
		text
			.replaceAll('&', '&amp;')
			.replaceAll('<', '&lt;')
			.replaceAll('>', '&gt;')
			.replaceAll('"', '&quot;')
			.replaceAll("'", '&#39;'),
	hexadecimal: (text) => Buffer.from(text).toString('hex'),
	'hexadecimal in capitals': (text) => Buffer.from(text).toString('hex').toUpperCase(),
	'a part of an address': (text) => encodeURIComponent(text),
	'an address': (text) => encodeURI(text),
	'a field of a form': (text) => new URLSearchParams({ a: text }).toString().slice(2),
	'every byte URL-encoded': percent,
	'every byte URL-encoded in capitals': (text) => percent(text).toUpperCase(),
}

void t.test('with no secret known nothing is looked at', async (t) => {
	const redactor = openRedactor()
	const data = { text: value }
	t.equal(redactor.active, false)
	t.equal(redactor.text(value, 'log'), value)
	t.equal(redactor.data(data, 'event'), data)
	const stream = redactor.stream('stream')
	t.equal(stream.push(value), value)
	t.equal(stream.end(), '')
})

for (const [name, spell] of Object.entries(spellings)) {
	void t.test(`a secret is found as ${name}`, async (t) => {
		t.equal(knowing(value).text(`before ${spell(value)} behind`, 'event'), `before ${mark} behind`)
		// Half of a surrogate pair has no URL-encoding, and none in base64.
		const whole = secret.filter((one) => one.isWellFormed())
		fc.assert(
			fc.property(whole, anyText, anyText, (one, before, behind) => {
				const shown = knowing(one).text(before + spell(one) + behind, 'event')
				return shown.includes(mark) && !shown.toLowerCase().includes(spell(one).toLowerCase())
			}),
		)
	})
}

for (const encoding of ['base64', 'base64url'] as const) {
	void t.test(`a secret is found in ${encoding}, whatever stands around it`, async (t) => {
		const bytes = fc.uint8Array({ maxLength: 9 })
		fc.assert(
			fc.property(secret, bytes, bytes, (one, before, behind) => {
				const text = Buffer.concat([before, Buffer.from(one), behind]).toString(encoding)
				const shown = knowing(one).text(`"${text}"`, 'event')
				// What is left are the neighbours, with a few bits of the secret's first and last byte.
				const left = shown.length - `"${mark}"`.length
				return shown.includes(mark) && left <= Math.ceil(((before.length + behind.length) * 8) / 6) + 5
			}),
		)
		t.pass()
	})
}

void t.test('text that went through once is not changed again, whatever the secrets are', async (t) => {
	const marks = fc.constantFrom('[', ']', '[redacted:', 'redacted', ':KEY', '[redacted:KEY]', 'KEY2]', 'x', 'y')
	const odd = fc.array(marks, { minLength: 2, maxLength: 6 }).map((parts) => parts.join(''))
	const sought = fc.oneof(
		secret,
		odd.filter((one) => openRedactor().add({ id: 'a', name: 'A', value: one })),
	)
	fc.assert(
		fc.property(fc.array(sought, { minLength: 1, maxLength: 4 }), fc.array(fc.oneof(anyText, odd)), (values, texts) => {
			const redactor = knowing(...values)
			const once = redactor.text([...texts, ...values, ...values].join(''), 'event')
			return redactor.text(once, 'event') === once && values.every((one) => !once.includes(one))
		}),
		{ numRuns: RUNS },
	)
	t.pass()
})

void t.test('a text in pieces shows what the whole text would show, wherever its borders are', async (t) => {
	const known = knowing(value, 'hunter2hunter2', 'hunter2hunter2-and-more')
	const whole = `a ${value} hunter2hunter2 hunter2hunter2-and-m sk-Live, ${json(value)} ${Buffer.from(value).toString('base64')} hunter2`
	const expected = known.text(whole, 'stream')
	const wrong = Array.from({ length: whole.length + 1 }, (_, border) => {
		const stream = known.stream('stream')
		const shown = [stream.push(whole.slice(0, border)), stream.push(whole.slice(border)), stream.end()]
		return { border, shown }
	}).filter(({ shown }) => shown.join('') !== expected || /sk-Live\//i.test(shown[0] ?? ''))
	t.strictSame(wrong, [])
	fc.assert(
		fc.property(
			fc.array(secret, { minLength: 1, maxLength: 3 }),
			fc.array(anyText, { maxLength: 4 }),
			fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }),
			(values, between, sizes) => {
				const redactor = knowing(...values)
				const text = values.map((one, at) => one + (between[at] ?? '') + percent(one)).join('') + values[0]?.slice(0, 7)
				const stream = redactor.stream('stream')
				let shown = ''
				for (let at = 0, n = 0; at < text.length; n++) {
					const size = sizes[n % sizes.length] as number
					shown += stream.push(text.slice(at, at + size))
					at += size
				}
				return shown + stream.end() === redactor.text(text, 'stream')
			},
		),
		{ numRuns: RUNS },
	)
})

void t.test('a stream holds back only what may become a secret', async (t) => {
	const stream = knowing('swordfish-42').stream('stream')
	t.equal(stream.push('The answer is s'), 'The answer is ')
	t.equal(stream.push('imple'), 'simple')
	t.equal(stream.push(': sword'), ': ')
	t.equal(stream.push('fish-4'), '')
	t.equal(stream.push('1 and swordfish-42'), `swordfish-41 and ${mark}`)
	t.equal(stream.push(', swordfish'), ', ')
	t.equal(stream.end(), 'swordfish')
	t.equal(stream.push('-42'), '-42', 'it begins anew')
})

void t.test(
	'secrets within and across each other go as one, under the name of the one that reaches farther',
	async (t) => {
		const redactor = knowing('abcdefgh', 'abcdefghijkl', 'ijklmnopqrst')
		const show = (text: string): string => redactor.text(text, 'event')
		t.equal(show('<abcdefgh>'), `<${mark}>`)
		t.equal(show('<abcdefghijkl>'), '<[redacted:KEY2]>')
		t.equal(show('<abcdefghijklmnopqrst>'), '<[redacted:KEY3]>')
		t.equal(show('<abcdefghabcdefgh>'), `<${mark}${mark}>`)
	},
)

void t.test('some secrets may be let through, those within them may not', async (t) => {
	const redactor = knowing('abcdefgh', 'abcdefghijkl')
	const show = (text: string, ...except: string[]): string => redactor.text(text, 'model', new Set(except))
	t.equal(show('abcdefgh abcdefghijkl', 'id-1'), 'abcdefgh [redacted:KEY2]')
	t.equal(show('abcdefgh abcdefghijkl', 'id-2'), `${mark} ${mark}ijkl`)
	t.equal(show('abcdefgh abcdefghijkl', 'id-1', 'id-2'), 'abcdefgh abcdefghijkl')
	const stream = redactor.stream('stream', new Set(['id-1', 'id-2']))
	t.equal(stream.push('abcdefg'), 'abcdefg', 'nothing of them is held back')
})

void t.test(
	'a key of many lines is found with other line breaks, indented, in JSON, cut at the end and by its lines',
	async (t) => {
		const lines = Array.from({ length: 25 }, (_, at) => Buffer.alloc(48, `line ${at} ${value}`).toString('base64'))
		const pem = ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n')
		const redactor = knowing(pem)
		const show = (text: string): string => redactor.text(text, 'event')
		const forms = {
			'as it is': pem.trimEnd(),
			'with CRLF': pem.trimEnd().replaceAll('\n', '\r\n'),
			indented: pem.trimEnd().replaceAll('\n', '\n    '),
			'on one line': pem.trimEnd().replaceAll('\n', ''),
			'in JSON': json(pem.trimEnd()),
			'in JSON in JSON': json(json(pem.trimEnd())),
			'in base64 of 76 columns': Buffer.from(pem.trimEnd())
				.toString('base64')
				.replace(/.{76}/g, '$&\n')
				.replace(/=+$/, ''),
		}
		for (const [name, form] of Object.entries(forms)) {
			t.match(show(`<${form}>`), /^<\[redacted:KEY\].?>$/, name)
			const stream = redactor.stream('stream')
			let shown = ''
			for (const [piece] of `<${form}>`.matchAll(/[^]{1,7}/g)) shown += stream.push(piece)
			t.equal(shown + stream.end(), show(`<${form}>`), `${name}, in pieces`)
		}
		t.equal(show(`<${pem.slice(0, 700)}`), `<${mark}`, 'cut off')
		t.equal(show(`<${lines[7]}>`), `<${mark}>`, 'a line')
		const others = '-----BEGIN PRIVATE KEY-----\nMIIE'
		t.equal(show(others), others, 'the head that all keys have')
	},
)

void t.test('a secret that was cut off with an ellipsis is found by its first 16 characters', async (t) => {
	const redactor = knowing('sk-proj-0123456789abcdef')
	const show = (text: string): string => redactor.text(text, 'event')
	t.equal(show('it is sk-proj-0123456789abc…'), `it is ${mark}…`)
	t.equal(show('it is sk-proj-01234567… [cut: 9 more characters]'), `it is ${mark}… [cut: 9 more characters]`)
	t.equal(show(`it is ${Buffer.from('sk-proj-0123456789').toString('hex')}…`), `it is ${mark}…`)
	t.equal(show('it is sk-proj-0123456…'), 'it is sk-proj-0123456…', 'less may be what many have in common')
	t.equal(show('it is sk-proj-0123456789'), 'it is sk-proj-0123456789')
	const stream = redactor.stream('stream')
	t.equal(stream.push('it is sk-proj-0123456789abc') + stream.push('…') + stream.end(), `it is ${mark}…`)
})

void t.test('white space around a value is no part of the secret', async (t) => {
	t.equal(knowing('  hunter2hunter2\n').text('<hunter2hunter2>', 'event'), `<${mark}>`)
})

void t.test('too short values and the words of records are not looked for', async (t) => {
	const redactor = openRedactor()
	for (const one of ['', 'sevenis', '  sevenis ', 'completed', 'COMPLETE', 'agent_uid', '[redacted', 'redacted']) {
		t.equal(redactor.add({ id: one, name: 'KEY', value: one }), false, one)
	}
	t.equal(redactor.active, false)
})

void t.test('the mark holds no secret, and is safe in JSON and HTML', async (t) => {
	const markOf = (name: string, one = value): string => {
		const redactor = openRedactor()
		redactor.add({ id: '0192-id', name, value: one })
		return redactor.text(one, 'event')
	}
	t.equal(markOf('API key: prod'), '[redacted:API key: prod]')
	t.equal(markOf('hunter2hunter2', 'hunter2hunter2'), '[redacted:0192-id]')
	for (const name of ['a"b', 'a\\b', '<b>', 'a\nb', '', 'ключ']) t.equal(markOf(name), '[redacted:0192-id]', name)
	const redactor = knowing('hunter2hunter2', 'swordfish-42')
	redactor.add({ id: 'id-3', name: 'the swordfish-42', value: 'third secret' })
	t.equal(redactor.text('third secret', 'event'), '[redacted:id-3]', 'no other secret either')
})

void t.test('data keeps its shape: strings and keys change, the rest stays', async (t) => {
	const redactor = knowing('hunter2hunter2')
	const clean = { a: [1, null, true, 'text of some length'], b: { c: new Uint8Array([1, 2]) }, d: undefined }
	t.equal(redactor.data(clean, 'event'), clean, 'the same object where nothing was found')
	const bytes = Buffer.from('hunter2hunter2')
	const dirty = { 'at hunter2hunter2': 1, b: [{ c: 'x hunter2hunter2' }], clean, bytes, when: new Date(0) }
	const before = JSON.stringify(dirty)
	const shown = redactor.data(dirty, 'event') as unknown as Record<string, unknown>
	t.strictSame(shown, { [`at ${mark}`]: 1, b: [{ c: `x ${mark}` }], clean, bytes, when: new Date(0) })
	t.equal(shown.clean, clean, 'what holds none is not copied')
	t.equal(JSON.stringify(dirty), before, 'and what was given is not changed')
	t.strictSame(
		redactor.data({ hunter2hunter2: 1, HUNTER2hunter2: 2 }, 'event') as unknown,
		{ [mark]: 1, [`${mark}'`]: 2 },
		'no value is lost where names become the same',
	)
	const made = redactor.data(JSON.parse('{"__proto__": {"x": "hunter2hunter2"}}') as object, 'event')
	t.strictSame(JSON.stringify(made), `{"__proto__":{"x":"${mark}"}}`)
	t.equal(({} as { x?: unknown }).x, undefined)
	const told = redactor.data({ toJSON: () => ({ x: 'hunter2hunter2' }) }, 'event') as unknown
	t.strictSame(told, { x: mark })
})

void t.test('data of any depth is looked at, and a circle ends', async (t) => {
	const redactor = knowing('hunter2hunter2')
	let deep: unknown = { text: 'hunter2hunter2' }
	for (let depth = 0; depth < 1_000; depth++) deep = depth % 2 ? [deep] : { deep }
	t.notMatch(JSON.stringify(redactor.data(deep, 'event')), /hunter2/)
	const circle: Record<string, unknown> = {}
	circle.circle = circle
	t.equal(redactor.data(circle, 'event'), circle)
	const broken = {
		text: 'hunter2hunter2',
		toJSON: () => {
			throw new Error('no')
		},
	}
	t.equal(redactor.data(broken, 'event'), broken, 'nobody can write it')
	t.throws(() => JSON.stringify(broken))
})

void t.test('what was taken out is told once a call, with its count', async (t) => {
	const redactor = knowing('hunter2hunter2', 'swordfish-42')
	const heard: Redaction[] = []
	const stop = redactor.onRedacted((found) => heard.push(found))
	redactor.data(['hunter2hunter2 hunter2hunter2', { x: 'swordfish-42', y: 'hunter2hunter2' }], 'event')
	redactor.text('nothing in here', 'event')
	t.strictSame(heard.splice(0), [
		{ id: 'id-1', name: 'KEY', sink: 'event', count: 3 },
		{ id: 'id-2', name: 'KEY2', sink: 'event', count: 1 },
	])
	const aside: Redaction[] = []
	redactor.reportingTo((found) => aside.push(found)).text('swordfish-42', 'model')
	t.strictSame([heard.length, aside.map(({ sink }) => sink)], [0, ['model']])
	const stream = redactor.stream('stream')
	stream.push('sword')
	t.equal(heard.length, 0)
	stream.push('fish-42.')
	t.strictSame(heard.splice(0), [{ id: 'id-2', name: 'KEY2', sink: 'stream', count: 1 }])
	stop()
	redactor.text('hunter2hunter2', 'event')
	t.equal(heard.length, 0)
})

void t.test('secrets come, get other values, and go', async (t) => {
	const redactor = knowing('hunter2hunter2', 'swordfish-42')
	const show = (text: string): string => redactor.text(text, 'event')
	redactor.add({ id: 'id-1', name: 'KEY', value: 'rotated-value' })
	t.equal(show('hunter2hunter2 rotated-value'), `${mark} ${mark}`, 'the earlier value is still none to show')
	redactor.remove('id-1')
	t.equal(show('hunter2hunter2 rotated-value swordfish-42'), 'hunter2hunter2 rotated-value [redacted:KEY2]')
	redactor.remove('id-2')
	redactor.remove('id-2')
	t.equal(redactor.active, false)
	for (let n = 0; n < 20; n++) redactor.add({ id: 'id-1', name: 'KEY', value: `rotated-value-${n}-x` })
	t.equal(show('rotated-value-3-x rotated-value-4-x rotated-value-19-x'), `rotated-value-3-x ${mark} ${mark}`)
})

void t.test('one that is gone is looked for on, until another has its value, or very many went after it', async (t) => {
	const redactor = knowing('hunter2hunter2', 'swordfish-42')
	const show = (text: string): string => redactor.text(text, 'event')
	redactor.retire('id-1')
	redactor.retire('unknown')
	t.equal(show('hunter2hunter2 swordfish-42'), `${mark} [redacted:KEY2]`)
	redactor.add({ id: 'id-3', name: 'KEY3', value: 'hunter2hunter2' })
	t.equal(show('hunter2hunter2'), '[redacted:KEY3]')
	t.equal(redactor.text('hunter2hunter2', 'model', new Set(['id-3'])), 'hunter2hunter2', 'whoever may see the new one')
	redactor.retire('id-2')
	for (let n = 0; n < 100; n++) {
		t.equal(show('swordfish-42'), '[redacted:KEY2]')
		redactor.add({ id: `more-${n}`, name: 'MORE', value: `another-value-${n}-x` })
		redactor.retire(`more-${n}`)
	}
	t.equal(show('swordfish-42 another-value-0-x'), 'swordfish-42 [redacted:MORE]')
})

void t.test('a text that is made to be slow is not: were its time quadratic, it would take minutes', async (t) => {
	const repeated = 'a'.repeat(64 * 1024)
	const redactor = knowing(repeated, `${'ab'.repeat(40)}c`, '-----BEGIN PRIVATE KEY-----\nMIIEvQ==')
	for (const part of ['ab', '-----BEGIN PRIVATE KEY-----\n']) {
		const text = part.repeat(Math.ceil((256 * 1024) / part.length))
		t.equal(redactor.text(text, 'event'), text)
	}
	t.equal(redactor.text(repeated.repeat(4), 'event'), mark)
	// Where it gives up looking, it takes out all that is left.
	t.equal(redactor.text(`<${repeated}> and what follows`, 'event'), `<${mark}`)
})

void t.test('of many secrets that begin alike, and of text that never ends a line, the same holds', async (t) => {
	const redactor = openRedactor()
	const alike = 'a'.repeat(250)
	for (let n = 0; n < 300; n++) redactor.add({ id: `id-${n}`, name: `KEY${n}`, value: `${alike}${n}` })
	const text = 'a'.repeat(16 * 1024)
	t.equal(redactor.text(text, 'event'), text)
	t.equal(redactor.text(`${alike}299.${alike}b`, 'event'), `[redacted:KEY299].${alike}b`)
	for (let n = 0; n < 300; n++) redactor.remove(`id-${n}`)
	t.equal(redactor.active, false)
	const backslashes = '\\'.repeat(32 * 1024)
	t.equal(knowing('\\hunter2').text(backslashes, 'event'), backslashes)
})

interface Sought {
	pattern: string
	owner: string
}

/** What the matcher is to find, pattern by pattern and place by place. */
function naively(sought: Sought[], text: string, except: Set<string>) {
	const lower = (unit: string): string => (/^[A-Z]$/.test(unit) ? unit.toLowerCase() : unit)
	const spans: { start: number; end: number; owners: string[] }[] = []
	let open = text.length
	let openAtEnd = text.length
	for (let start = 0; start < text.length; start++) {
		for (const { pattern, owner } of sought.filter((one) => !except.has(one.owner))) {
			let [at, end, agreed, skipped, isCut] = [start, start, 0, false, false]
			while (agreed < pattern.length && at < text.length) {
				const filler = agreed < 8 || skipped ? 0 : fillerAt(text, at)
				if (lower(text.charAt(at)) === lower(pattern.charAt(agreed))) {
					agreed++
					end = ++at
					skipped = false
				} else if (agreed >= 16 && text.charAt(at) === '…') {
					isCut = true
					break
				} else if (filler > 0) {
					at += filler
					skipped = true
				} else break
			}
			const ranOut = agreed < pattern.length && at >= text.length
			if (ranOut && agreed >= 8) open = Math.min(open, start)
			if (ranOut && start > text.length - 8) openAtEnd = Math.min(openAtEnd, start)
			if (!isCut && agreed < Math.min(pattern.length, 256)) continue
			const last = spans.at(-1)
			if (!last || start >= last.end) spans.push({ start, end, owners: [owner] })
			else if (end > last.end) Object.assign(last, { end, owners: [owner] })
			else if (end === last.end) last.owners.push(owner)
		}
	}
	return { spans, open, openAtEnd }
}

void t.test('all secrets are found at once as they would be one by one, while some come and go', async (t) => {
	const unit = fc.constantFrom('a', 'b', 'B', '\\', 'n', '\n', ' ', '…', '\u200b', 'é', '%')
	const letters = fc.array(fc.constantFrom('a', 'b'), { minLength: 8, maxLength: 24 }).map((all) => all.join(''))
	const odd = fc.array(unit, { minLength: 8, maxLength: 20 }).map((all) => all.join(''))
	const long = fc.tuple(letters, fc.nat(260)).map(([text, more]) => text + 'ab'.repeat(more).slice(0, more))
	/** Alike up to where one has as its own text what others pass over. */
	const forked = fc
		.tuple(
			fc.constantFrom(8, 20, 300),
			fc.constantFrom('', '\\n', '\u200b', '…', '\n'),
			fc.constantFrom('a', 'b', 'ab…'),
		)
		.map(([length, between, then]) => 'ab'.repeat(length / 2) + between + then)
	const pattern = fc.oneof(letters, odd, long, forked, forked)
	const owner = fc.constantFrom('p', 'q', 'r')
	const seeking = fc.array(fc.record({ pattern, owner }), { minLength: 1, maxLength: 12 })
	/** Pieces of patterns with what may stand within and between them. */
	const piece = fc.record({ which: fc.nat(11), from: fc.nat(3), to: fc.integer({ min: 8, max: 320 }), other: odd })
	fc.assert(
		fc.property(
			seeking,
			fc.array(fc.nat(11)),
			fc.array(piece, { maxLength: 4 }),
			fc.subarray(['p', 'q']),
			(all, gone, pieces, hidden) => {
				const matcher = new Matcher()
				for (const one of all) matcher.add(one.pattern, one.owner)
				for (const at of new Set(gone)) if (all[at]) matcher.remove(all[at].pattern, all[at].owner)
				matcher.remove('never added', 'p')
				const sought = all.filter((_, at) => !gone.includes(at))
				const text = pieces
					.map(({ which, from, to, other }) => {
						const source = all[which % all.length]?.pattern ?? ''
						const middle = Math.max(8, Math.min(to, source.length) >> (from & 1))
						return source.slice(from, middle) + other.slice(0, from % 3) + source.slice(middle, to) + other.slice(8)
					})
					.join('')
				const except = new Set(hidden)
				const found = matcher.find(text, except)
				const expected = naively(sought, text, except)
				return (
					found.open === expected.open &&
					matcher.openAtEnd(text, except) === expected.openAtEnd &&
					found.spans.length === expected.spans.length &&
					expected.spans.every(({ start, end, owners }, at) => {
						const span = found.spans[at]
						return span?.start === start && span.end === end && owners.includes(span.owner)
					})
				)
			},
		),
		{ numRuns: RUNS },
	)
	t.pass()
})

void t.test('where a text has what one secret has and another passes over, both are followed', async (t) => {
	const matcherFor = (sought: Record<string, string>): Matcher => {
		const matcher = new Matcher()
		for (const [owner, pattern] of Object.entries(sought)) matcher.add(pattern, owner)
		return matcher
	}
	const broken = matcherFor({ p: 'abcdefgh\nxy', q: 'abcdefghxyz' })
	t.strictSame(broken.find('abcdefgh\nxyz').spans, [{ start: 0, end: 12, owner: 'q' }])
	t.strictSame(broken.find('abcdefgh\nxyz', new Set(['q'])).spans, [{ start: 0, end: 11, owner: 'p' }])
	t.strictSame(broken.find('abcdefgh\nxy', new Set(['p'])), { spans: [], open: 0 })
	const cut = matcherFor({ p: 'abcdefghijklmnop…z', q: 'abcdefghijklmnopqr' })
	t.strictSame(cut.find('abcdefghijklmnop…'), { spans: [{ start: 0, end: 16, owner: 'q' }], open: 0 })
	const one = matcherFor({ p: 'abcdefghij' })
	t.equal(one.find(`abcdefgh${'\n'.repeat(256)}ij`).spans.length, 1)
	t.equal(one.find(`abcdefgh${'\n'.repeat(257)}ij`).spans.length, 0, 'too far apart')
})

void t.test('what is left of the patterns is as if the others had never been', async (t) => {
	const words = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 6 }))
	const shapeOf = ({ label, owners, children }: Node): unknown => [
		label,
		owners,
		[...(children?.values() ?? [])].map(shapeOf).toSorted((one, other) => (String(one) < String(other) ? -1 : 1)),
	]
	fc.assert(
		fc.property(words, words, (stay, go) => {
			const [tree, expected] = [new Tree(), new Tree()]
			for (const word of stay) expected.add(word, 'p')
			for (const word of [...stay, ...go]) tree.add(word, 'p')
			const removed = go.every((word) => tree.remove(word, 'p'))
			return removed && JSON.stringify(shapeOf(tree.root)) === JSON.stringify(shapeOf(expected.root))
		}),
	)
	t.pass()
})

void t.test('among thousands each is found, in any spelling, until it goes', async (t) => {
	const redactor = openRedactor()
	const secrets = Array.from({ length: 2_000 }, (_, n) => createHash('sha256').update(String(n)).digest('hex'))
	for (const [n, one] of secrets.entries()) redactor.add({ id: `id-${n}`, name: `KEY${n}`, value: one })
	const all = Object.values(spellings).map((spell) => spell(secrets[1_500] ?? ''))
	for (const one of all) t.equal(redactor.text(`<${one}>`, 'event'), '<[redacted:KEY1500]>', one)
	for (let n = 0; n < 1_200; n++) redactor.remove(`id-${n}`)
	t.equal(redactor.text(secrets.slice(0, 1_200).join(' '), 'event'), secrets.slice(0, 1_200).join(' '))
	t.equal(
		redactor.text(secrets.slice(1_200).join(' '), 'event'),
		secrets
			.slice(1_200)
			.map((_, n) => `[redacted:KEY${n + 1_200}]`)
			.join(' '),
	)
})
