import fc from 'fast-check'
import t from 'tap'
import { isRedactable, namesHidden, openRedactor } from '../../../core/redactor/redactor.ts'
import type { Redaction, Redactor, View } from '../../../core/redactor/redactor.ts'
import { formsOf } from '../../../core/redactor/forms.ts'
import { PatternSearch } from '../../../core/redactor/pattern-search.ts'
import { SecretSet } from '../../../core/redactor/secret-set.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 50)
const ada = { name: 'ada', uid: '01890000-0000-7000-8000-000000000001' }
const value = 'sk-Live/9f+Q2 &x"Z\\é=='
const mark = '[redacted:KEY]'

function redactorWith(...values: string[]): Redactor {
	const redactor = openRedactor()
	for (const [at, one] of values.entries()) {
		const name = at === 0 ? 'KEY' : `KEY${at + 1}`
		if (!redactor.add(ada, { id: `id-${at + 1}`, name, value: one })) throw new Error(`${one} is not redactable`)
	}
	return redactor
}

function viewOf(...values: string[]): View {
	return redactorWith(...values).of([{ agent: 'ada' }])
}

/** Redactable values without surrounding white space, and without the characters of a mark. */
const secret = fc
	.string({ unit: 'grapheme', minLength: 8, maxLength: 60 })
	.filter((one) => one.trim() === one && !/[[\]\r\n]/.test(one) && one.isWellFormed() && isRedactable(one))
const anyText = fc.string({ unit: 'grapheme', maxLength: 40 })

const json = (text: string): string => JSON.stringify(text).slice(1, -1)
const hex = (text: string): string => Buffer.from(text).toString('hex')

/** JSON that also escapes the characters in `escaped`. */
const jsonWith = (escaped: string, text: string, isEscaped = (code: number): boolean => code > 0x7e): string =>
	Array.from(text, (one) =>
		escaped.includes(one) || isEscaped(one.codePointAt(0) ?? 0) ? unitsOf(one) : json(one),
	).join('')
const unitsOf = (character: string): string =>
	Array.from(
		{ length: character.length },
		(_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
	).join('')
const lineEnds = (code: number): boolean => code === 0x2028 || code === 0x2029
const goJson = (text: string): string => jsonWith('<>&', text, lineEnds)
const gsonJson = (text: string): string => jsonWith(`<>&='`, text, lineEnds)
const pythonJson = (text: string): string => jsonWith('', text)
const phpJson = (text: string): string => jsonWith('', text, (code) => code > 0x7f).replaceAll('/', String.raw`\/`)
const dotnetJson = (text: string): string =>
	jsonWith('"<>&\'+`', text).replace(/\\u[0-9a-f]{4}/g, (escape) => `\\u${escape.slice(2).toUpperCase()}`)

/** The encodings that docs/security.md promises, implemented independently of the product. */
const encodings: Record<string, (text: string) => string> = {
	plain: (text) => text,
	JSON: json,
	'JSON in JSON': (text) => json(json(text)),
	'JSON in JSON in JSON': (text) => json(json(json(text))),
	'JSON by Go': goJson,
	'JSON by Python': pythonJson,
	'JSON by PHP': phpJson,
	'JSON by Gson': gsonJson,
	'JSON by .NET': dotnetJson,
	'JSON by .NET in JSON': (text) => json(dotnetJson(text)),
	'JSON by PHP in JSON by PHP': (text) => phpJson(phpJson(text)),
	hexadecimal: hex,
	'hexadecimal in upper case': (text) => hex(text).toUpperCase(),
	encodeURIComponent: (text) => encodeURIComponent(text),
	'URL-encoded in lower case': (text) => encodeURIComponent(text).replace(/%../g, (escape) => escape.toLowerCase()),
	'a form field': (text) => new URLSearchParams({ a: text }).toString().slice(2),
	'URL-encoded by RFC 3986': (text) =>
		encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${hex(one).toUpperCase()}`),
}

void t.test('without secrets, nothing is changed or delayed', async (t) => {
	const redactor = openRedactor()
	const view = redactor.of([{ agent: 'ada' }, 'gateway', { provider: 'main' }, { uid: ada.uid }])
	const data = { text: value }
	t.equal(view.active, false)
	t.equal(view.text(value, 'log'), value)
	t.equal(view.data(data, 'event'), data)
	const stream = view.stream('stream')
	t.equal(stream.push(value), value)
	t.equal(stream.end(), '')
})

for (const [name, encode] of Object.entries(encodings)) {
	void t.test(`a complete secret is redacted: ${name}`, async (t) => {
		t.equal(viewOf(value).text(`before ${encode(value)} behind`, 'event'), `before ${mark} behind`)
		fc.assert(
			fc.property(secret, anyText, anyText, (one, before, behind) => {
				const shown = viewOf(one).text(before + encode(one) + behind, 'event')
				return shown.includes(mark) && !shown.includes(encode(one))
			}),
			{ numRuns: RUNS },
		)
		t.pass()
	})
}

for (const encoding of ['base64', 'base64url'] as const) {
	void t.test(`a complete secret is redacted: ${encoding}, with any data around it`, async (t) => {
		const bytes = fc.uint8Array({ maxLength: 9 })
		fc.assert(
			fc.property(secret, bytes, bytes, (one, before, behind) => {
				const text = Buffer.concat([before, Buffer.from(one), behind]).toString(encoding)
				const shown = viewOf(one).text(`"${text}"`, 'event')
				// The surrounding data stays, with a few bits of the secret's first and last byte.
				const rest = shown.length - `"${mark}"`.length
				return shown.includes(mark) && rest <= Math.ceil(((before.length + behind.length) * 8) / 6) + 5
			}),
			{ numRuns: RUNS },
		)
		t.pass()
	})
}

void t.test(
	'a part of a secret is not redacted: prefix, suffix or other case, with or without an ellipsis',
	async (t) => {
		const lines = Array.from({ length: 20 }, (_, at) => Buffer.alloc(48, `line ${at}`).toString('base64'))
		const pem = ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----'].join('\n')
		for (const one of [value, 'sk-proj-0123456789abcdef0123456789', 'hunter2hunter2', pem]) {
			const view = viewOf(one)
			const wrong: string[] = []
			for (const encode of Object.values(encodings)) {
				const encoded = encode(one)
				// Cuts the encoded secret: an encoded part of the secret would be a complete encoding of that part.
				for (let length = 1; length < encoded.length; length += encoded.length > 500 ? 97 : 1)
					for (const part of [encoded.slice(0, length), encoded.slice(length)])
						for (const text of [part, `${part}…`, `${part}\n`, `…${part}`])
							if (view.text(text, 'event') !== text) wrong.push(text)
			}
			t.strictSame(wrong, [])
			const upper = one.toUpperCase()
			t.equal(view.text(upper, 'event'), upper)
		}
		t.equal(viewOf(pem).text(`<${pem.replaceAll('\n', '\r\n')}>`, 'event'), `<${mark}>`, 'complete, with CRLF')
		t.equal(viewOf(pem).text(json(pem), 'event'), mark)
	},
)

void t.test('a text that was searched before is searched again for a new secret', async (t) => {
	const redactor = redactorWith(value)
	const view = redactor.of([{ agent: 'ada' }])
	const other = 'another-secret-9876'
	const text = `${'x'.repeat(500)} ${value} ${other}`
	const redacted = `${'x'.repeat(500)} ${mark} ${other}`
	for (let n = 0; n < 2; n++) t.equal(view.text(text, 'event'), redacted)
	t.equal(view.text(text, 'event', new Set(['id-1'])), text)
	t.equal(view.text(text, 'event'), redacted)
	redactor.add(ada, { id: 'id-2', name: 'OTHER', value: other })
	t.equal(view.text(text, 'event'), `${'x'.repeat(500)} ${mark} [redacted:OTHER]`)
	const found: Redaction[] = []
	const reporting = view.reportingTo((one) => found.push(one))
	t.strictSame(reporting.data({ prompt: text, again: text }, 'record'), {
		prompt: `${'x'.repeat(500)} ${mark} [redacted:OTHER]`,
		again: `${'x'.repeat(500)} ${mark} [redacted:OTHER]`,
	})
	t.match(found, [
		{ id: 'id-1', count: 2 },
		{ id: 'id-2', count: 2 },
	])
})

void t.test('only the secrets of the writers are redacted', async (t) => {
	const redactor = redactorWith('hunter2hunter2')
	redactor.add({ provider: 'main' }, { id: 'p', name: 'provider:main', value: 'sk-provider-key' })
	redactor.add('gateway', { id: 'g', name: 'BOT', value: 'bot-token-value' })
	const text = 'hunter2hunter2 sk-provider-key bot-token-value'
	const show = (...writers: Parameters<Redactor['of']>[0]): string => redactor.of(writers).text(text, 'event')
	t.equal(show({ agent: 'eve' }), text)
	t.equal(show({ agent: 'ada' }), `${mark} sk-provider-key bot-token-value`)
	t.equal(show({ uid: ada.uid }), `${mark} sk-provider-key bot-token-value`)
	t.equal(show({ provider: 'main' }), 'hunter2hunter2 [redacted:provider:main] bot-token-value')
	t.equal(show('gateway'), 'hunter2hunter2 sk-provider-key [redacted:BOT]')
	t.equal(show('gateway', { agent: 'ada' }, { provider: 'main' }), `${mark} [redacted:provider:main] [redacted:BOT]`)

	const writers: Parameters<Redactor['of']>[0][number][] = [{ agent: 'ada' }]
	const view = redactor.of(writers)
	writers.push('gateway')
	t.equal(view.text(text, 'event'), `${mark} sk-provider-key [redacted:BOT]`, 'a writer added later counts')

	const later = { name: 'ada', uid: '01890000-0000-7000-8000-000000000002' }
	redactor.add(later, { id: 'x', name: 'OTHER', value: 'another-secret' })
	t.equal(show({ agent: 'ada' }), text, 'a new agent does not have the secrets of a deleted one of the same name')
	redactor.add(ada, { id: 'y', name: 'LATE', value: 'bot-token-value' })
	t.equal(show({ agent: 'ada' }), text, 'even if the deleted one has not ended completely')
	redactor.forget(ada.uid)
	t.equal(show({ uid: ada.uid }), text)
	redactor.forget(later.uid)
	t.equal(redactor.of([{ agent: 'ada' }]).active, false)
})

void t.test('overlapping secrets are one span, with the name of the one that ends last', async (t) => {
	const view = viewOf('abcdefgh', 'abcdefghijkl', 'ijklmnopqrst')
	const show = (text: string): string => view.text(text, 'event')
	t.equal(show('<abcdefgh>'), `<${mark}>`)
	t.equal(show('<abcdefghijkl>'), '<[redacted:KEY2]>')
	t.equal(show('<abcdefghijklmnopqrst>'), '<[redacted:KEY3]>')
	t.equal(show('<abcdefghabcdefgh>'), `<${mark}${mark}>`)
	const redactor = redactorWith('abcdefghijkl')
	redactor.add('gateway', { id: 'g', name: 'GATE', value: 'ghijklmnopqr' })
	t.equal(redactor.of([{ agent: 'ada' }, 'gateway']).text('<abcdefghijklmnopqr>', 'event'), '<[redacted:GATE]>')
})

void t.test('an excepted secret is not redacted, even if another secret has the same value', async (t) => {
	const redactor = redactorWith('abcdefgh', 'abcdefghijkl')
	const show = (text: string, ...except: string[]): string =>
		redactor.of([{ agent: 'ada' }]).text(text, 'model', new Set(except))
	t.equal(show('abcdefgh abcdefghijkl', 'id-1'), 'abcdefgh [redacted:KEY2]')
	t.equal(show('abcdefgh abcdefghijkl', 'id-2'), `${mark} ${mark}ijkl`)
	t.equal(show('abcdefgh abcdefghijkl', 'id-1', 'id-2'), 'abcdefgh abcdefghijkl')
	redactor.add(ada, { id: 'id-3', name: 'AGAIN', value: 'abcdefgh' })
	t.equal(show('abcdefgh', 'id-3'), 'abcdefgh')
})

void t.test('how a stream is delayed depends only on the text', async (t) => {
	const texts = [
		'My dog is a hunter2hunter2',
		'sk-proj-01234567 hunter2hunter',
		`an address: https://example.com/${'a'.repeat(5_000)} and 日本語。`,
		`${'word '.repeat(2_000)}`,
		'𝒳'.repeat(10),
	]
	const sizes = [5, 64]
	const shownBy = (view: View, text: string, size: number): string[] => {
		const stream = view.stream('stream')
		const shown: string[] = []
		for (let at = 0; at < text.length; at += size) shown.push(stream.push(text.slice(at, at + size)))
		return [...shown, stream.end()]
	}
	// No text contains one of them, but many begin or end like a text. Their numbers, lengths and beginnings differ.
	const sets = [
		['hunter2hunter2-and-more'],
		['zzzzzzzz', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'],
		['sk-proj-0123456789abcdef'],
		['aaaaaaaaaaaaaaaab', 'https://example.com/b', `${'q'.repeat(500)}`],
	]
	for (const text of texts) {
		for (const size of sizes) {
			const [first, ...others] = sets.map((values) => shownBy(viewOf(...values), text, size))
			for (const other of others) t.strictSame(other, first, `${text.slice(0, 20)}, in pieces of ${size}`)
			t.equal(first?.join(''), text)
		}
	}
	const spaced = [['correct horse battery'], ['pässword pässword'], ['a b c d e f g h i j k l m n o p']]
	for (const text of texts) {
		const [first, ...others] = spaced.map((values) => shownBy(viewOf(...values), text, 31))
		for (const other of others) t.strictSame(other, first, `${text.slice(0, 20)}, with secrets of several words`)
	}
	const stream = viewOf('hunter2hunter2').stream('stream')
	t.strictSame(
		['The answer', ' is', ' hunter2', 'hunter', '2 and', ' more'].map((piece) => stream.push(piece)),
		['The ', 'answer ', 'is ', '', `${mark} `, 'and '],
	)
	t.equal(stream.end(), 'more')
	t.equal(stream.push('-42 x'), '-42 ', 'the next stream starts fresh')
})

void t.test('a stream is redacted like the complete text, wherever its pieces end', async (t) => {
	const complete = `a ${value} hunter2hunter2 ${hex('hunter2hunter2')}… ${json(value)} ${Buffer.from(value).toString('base64')} hunter2`
	const view = viewOf(value, 'hunter2hunter2')
	const expected = view.text(complete, 'stream')
	const wrong = Array.from({ length: complete.length + 1 }, (_, border) => {
		const stream = view.stream('stream')
		return stream.push(complete.slice(0, border)) + stream.push(complete.slice(border)) + stream.end()
	}).filter((shown) => shown !== expected)
	t.strictSame(wrong, [])
	const long = `${'x'.repeat(5_000)}hunter2hunter2${'y'.repeat(9_000)}hunter2hunter2`
	const stream = view.stream('stream')
	let shown = ''
	for (let at = 0; at < long.length; at += 11) shown += stream.push(long.slice(at, at + 11))
	t.equal(shown + stream.end(), view.text(long, 'stream'), 'a long text without a space')
	fc.assert(
		fc.property(
			fc.array(secret, { minLength: 1, maxLength: 3 }),
			fc.array(anyText, { maxLength: 4 }),
			fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }),
			(values, between, sizes) => {
				const view = viewOf(...values)
				const text = values.map((one, at) => one + (between[at] ?? '') + hex(one)).join('') + values[0]?.slice(0, 7)
				const stream = view.stream('stream')
				let shown = ''
				for (let at = 0, n = 0; at < text.length; n++) {
					const size = sizes[n % sizes.length] as number
					shown += stream.push(text.slice(at, at + size))
					at += size
				}
				return shown + stream.end() === view.text(text, 'stream')
			},
		),
		{ numRuns: RUNS },
	)
})

void t.test('a text is redacted before it is cut', async (t) => {
	const view = viewOf('hunter2hunter2')
	for (let before = 0; before <= 20; before++) {
		const text = `${'x'.repeat(before)}hunter2hunter2${'y'.repeat(50)}`
		const { text: shown, dropped } = view.cut(text, 16, 'event')
		t.notMatch(shown, /hunter|unter2/, `at ${before}`)
		const isWithin = before < 16
		t.equal(shown, isWithin ? `${'x'.repeat(before)}${mark}${'y'.repeat(Math.max(0, 2 - before))}` : 'x'.repeat(16))
		t.equal(dropped, text.length - (isWithin ? Math.max(16, before + 14) : 16))
	}
	t.strictSame(view.cut('short', 16, 'event'), { text: 'short', dropped: 0 })
	t.strictSame(openRedactor().of(['gateway']).cut('longer', 3, 'event'), { text: 'lon', dropped: 3 })
})

void t.test('short values and words of records are not redactable', async (t) => {
	for (const one of ['', 'sevenis', '  sevenis ', 'completed', 'agent_uid', '[redacted', 'redacted'])
		t.equal(openRedactor().add('gateway', { id: one, name: 'KEY', value: one }), false, one)
	t.equal(
		viewOf('  hunter2hunter2\n').text('<hunter2hunter2>', 'event'),
		`<${mark}>`,
		'surrounding white space is ignored',
	)
})

void t.test('the mark contains no secret, and is safe in JSON', async (t) => {
	const markOf = (name: string, one = value): string => {
		const redactor = openRedactor()
		redactor.add('gateway', { id: '0192-id', name, value: one })
		return redactor.of(['gateway']).text(one, 'event')
	}
	t.equal(markOf('API key: prod'), '[redacted:API key: prod]')
	t.equal(markOf('hunter2hunter2', 'hunter2hunter2'), '[redacted]')
	for (const name of ['a"b', 'a\\b', 'a\nb', '', 'ключ']) t.equal(markOf(name), '[redacted]', name)
})

void t.test('names of secrets are visible only with a scope to list them', async (t) => {
	const redactor = openRedactor()
	const text = 'a [redacted:KEY] b [redacted:webhook:deploy], [redacted] [redacted:KE…'
	const hidden = 'a [redacted] b [redacted], [redacted] [redacted]…'
	const event = { event_id: 'e', timestamp: 't', agent_id: 'ada', run_id: 'r', sequence: 1 }
	const notice = {
		...event,
		event_type: 'security.redacted',
		payload: { secret: 'KEY', secret_id: 'i', sink: 'log', count: 2 },
	}
	t.equal(redactor.clearanceOf(['vault:read']).seesNames, false, 'before the scope is set')
	redactor.showNamesTo('vault:read')
	for (const scopes of [['*'], ['vault:read'], ['runs:write', 'vault:read']]) {
		t.equal(redactor.clearanceOf(scopes).text(text), text)
		t.equal(redactor.clearanceOf(scopes).event(notice), notice)
	}
	for (const scopes of [[], ['vault:write'], ['events:read', 'agents:read']]) {
		const clearance = redactor.clearanceOf(scopes)
		t.equal(clearance.text(text), hidden)
		t.equal(clearance.text(JSON.stringify({ text })), JSON.stringify({ text: hidden }))
		t.strictSame(clearance.data({ '[redacted:KEY]': [text] }), { '[redacted]': [hidden] })
		t.strictSame(clearance.event(notice).payload, { sink: 'log', count: 2 })
		t.strictSame(clearance.event({ ...event, event_type: 'x', payload: { text } }).payload, { text: hidden })
	}
	t.equal(namesHidden.text(text), hidden)
})

void t.test('in data, only strings and keys change', async (t) => {
	const view = viewOf('hunter2hunter2')
	const clean = { a: [1, null, true, 'text of some length'], b: { c: new Uint8Array([1, 2]) }, d: undefined }
	t.equal(view.data(clean, 'event'), clean, 'the same object if nothing was found')
	const bytes = Buffer.from('hunter2hunter2')
	const dirty = { 'at hunter2hunter2': 1, b: [{ c: 'x hunter2hunter2' }], clean, bytes, when: new Date(0) }
	const before = JSON.stringify(dirty)
	const shown = view.data(dirty, 'event') as unknown as Record<string, unknown>
	t.strictSame(shown, { [`at ${mark}`]: 1, b: [{ c: `x ${mark}` }], clean, bytes, when: new Date(0) })
	t.equal(shown.clean, clean, 'a part without secrets is not copied')
	t.equal(JSON.stringify(dirty), before, 'the input is not changed')
	t.strictSame(
		view.data({ hunter2hunter2: 1, [hex('hunter2hunter2')]: 2 }, 'event') as unknown,
		{ [mark]: 1, [`${mark}'`]: 2 },
		'no value is lost if keys become equal',
	)
	const made = view.data(JSON.parse('{"__proto__": {"x": "hunter2hunter2"}}') as object, 'event')
	t.strictSame(JSON.stringify(made), `{"__proto__":{"x":"${mark}"}}`)
	t.equal(({} as { x?: unknown }).x, undefined)
	const fromJson = view.data({ toJSON: () => ({ x: 'hunter2hunter2' }) }, 'event') as unknown
	t.strictSame(fromJson, { x: mark })
})

void t.test('a number equal to a secret is redacted, and one that only contains it is not', async (t) => {
	const found: Redaction[] = []
	const view = viewOf('48392011', '1234.5678').reportingTo((one) => found.push(one))
	const numbers = { a: 48392011, b: [-48392011, 1234.5678], c: { d: [48392011] } }
	const shown = view.data(numbers, 'event') as unknown
	t.strictSame(shown, { a: mark, b: [mark, '[redacted:KEY2]'], c: { d: [mark] } })
	t.match(found, [
		{ name: 'KEY', count: 3 },
		{ name: 'KEY2', count: 1 },
	])
	found.length = 0
	const others = { a: 1748392011000, b: 4839201, c: 48392011.5, d: 4.8392011e40, e: Infinity }
	t.equal(view.data(others, 'event'), others)
	t.strictSame(found, [])
})

void t.test('data that cannot be checked is replaced by [unreadable]', async (t) => {
	const view = viewOf('hunter2hunter2')
	let deep: unknown = { text: 'hunter2hunter2' }
	for (let depth = 0; depth < 1_000; depth++) deep = depth % 2 ? [deep] : { deep }
	t.notMatch(JSON.stringify(view.data(deep, 'event')), /hunter2/)
	const cyclic: Record<string, unknown> = { text: 'hunter2hunter2' }
	cyclic.one = cyclic
	cyclic.other = [cyclic, cyclic]
	t.strictSame(view.data(cyclic, 'event'), { text: mark, one: '[unreadable]', other: ['[unreadable]', '[unreadable]'] })
	const throws = (): never => {
		throw new Error('no')
	}
	const odd = {
		fails: { text: 'hunter2hunter2', toJSON: throws },
		get getter() {
			return throws()
		},
		fn: () => 'hunter2hunter2',
	}
	t.equal(view.data(odd, 'event') as unknown, '[unreadable]')
	const held = {
		fails: odd.fails,
		fn: odd.fn,
		map: new Map([['k', 'hunter2hunter2']]),
		set: new Set(['hunter2hunter2']),
	}
	t.strictSame(view.data({ held, fine: 1 }, 'event') as unknown, {
		held: { fails: '[unreadable]', fn: '[unreadable]', map: '[unreadable]', set: '[unreadable]' },
		fine: 1,
	})
	t.equal(view.data(new Proxy({}, { ownKeys: throws }), 'event') as unknown, '[unreadable]')
})

void t.test('redactions are reported once per call, with their number', async (t) => {
	const redactor = redactorWith('hunter2hunter2', 'swordfish-42')
	const view = redactor.of([{ agent: 'ada' }])
	const reports: Redaction[] = []
	const stop = redactor.onRedacted((found) => reports.push(found))
	view.data(['hunter2hunter2 hunter2hunter2', { x: 'swordfish-42', y: 'hunter2hunter2' }], 'event')
	view.text('nothing in here', 'event')
	t.strictSame(reports.splice(0), [
		{ id: 'id-1', name: 'KEY', sink: 'event', count: 3 },
		{ id: 'id-2', name: 'KEY2', sink: 'event', count: 1 },
	])
	const separate: Redaction[] = []
	view.reportingTo((found) => separate.push(found)).text('swordfish-42', 'model')
	t.strictSame([reports.length, separate.map(({ sink }) => sink)], [0, ['model']])
	const stream = view.stream('stream')
	stream.push('sword')
	t.equal(reports.length, 0)
	stream.push('fish-42 ')
	t.strictSame(reports.splice(0), [{ id: 'id-2', name: 'KEY2', sink: 'stream', count: 1 }])
	stop()
	view.text('hunter2hunter2', 'event')
	t.equal(reports.length, 0)
})

void t.test('the last 8 values of a secret and the last 256 secrets stay redacted', async (t) => {
	const redactor = redactorWith('hunter2hunter2')
	const show = (text: string): string => redactor.of([{ agent: 'ada' }]).text(text, 'event')
	for (let n = 0; n < 9; n++) redactor.add(ada, { id: 'id-1', name: 'KEY', value: `rotated-value-${n}-x` })
	t.equal(show('rotated-value-0-x rotated-value-1-x rotated-value-8-x'), `rotated-value-0-x ${mark} ${mark}`)
	redactor.add(ada, { id: 'id-2', name: 'SECOND', value: 'second-secret' })
	for (let n = 0; n < 254; n++) redactor.add(ada, { id: `more-${n}`, name: 'MORE', value: `another-value-${n}-x` })
	redactor.add(ada, { id: 'id-1', name: 'KEY', value: 'rotated-value-8-x' })
	redactor.add(ada, { id: 'last', name: 'LAST', value: 'the-last-value' })
	t.equal(show('second-secret rotated-value-8-x the-last-value'), `second-secret ${mark} [redacted:LAST]`)
})

void t.test('a mark that a model repeats is streamed in one piece, so that its name can be hidden', (t) => {
	const text = `it was ${mark}, ${'and so on, '.repeat(500)}`
	for (const size of [1, 2, 3, 5, 7, 11]) {
		const stream = viewOf('a secret of several words').stream('stream')
		const pieces = text.match(new RegExp(`.{1,${size}}`, 'g')) ?? []
		const shown = [...pieces.map((piece) => stream.push(piece)), stream.end()]
		t.equal(shown.map((piece) => namesHidden.text(piece)).join(''), namesHidden.text(text), `in pieces of ${size}`)
	}
	t.end()
})

void t.test('a secret that contains another one is replaced completely', (t) => {
	const inner = 'k7Qp2mX9vR4t'
	const outer = `{"host":"db.example.com","user":"a-service-with-a-long-name","password":"${inner}","key":"Zx81mQpLr0vTn5Ys"}`
	t.equal(viewOf(outer, inner).text(`of ${outer}, of ${inner}`, 'event'), `of ${mark}, of [redacted:KEY2]`)
	t.end()
})

void t.test('the memory for searching many secrets is proportional to their length', (t) => {
	const set = new SecretSet(() => {})
	let length = 0
	for (let n = 0; n < 64; n++) {
		// No two values share a character.
		const value = String.fromCharCode(...Array.from({ length: 40 }, (_, at) => 0x4e00 + 40 * n + at))
		set.add({ id: `id-${n}`, name: 'KEY', value })
		length += formsOf(value).join('').length
	}
	t.strictSame(set.find('none of them'), [])
	t.ok(set.bytes < 8 * length, `${set.bytes} bytes for forms of ${length} characters`)
	t.end()
})

void t.test('adversarial texts are searched fast: quadratic time would be minutes', async (t) => {
	const repeated = 'a'.repeat(64 * 1024)
	const view = viewOf(repeated, `${'ab'.repeat(40)}c`, '-----BEGIN PRIVATE KEY-----\nMIIEvQ==')
	for (const part of ['ab', '-----BEGIN PRIVATE KEY-----\n']) {
		const text = part.repeat(Math.ceil((256 * 1024) / part.length))
		t.equal(view.text(text, 'event'), text)
	}
	const long = Array.from({ length: 64 * 1024 }, (_, at) => String.fromCharCode(33 + ((at * at * 7 + at) % 89))).join(
		'',
	)
	const key = `${long.slice(0, 32 * 1024)}0123456789ABCDEF${long.slice(32 * 1024)}`
	const viewOfKey = viewOf(key)
	for (let start = 0; start <= 8; start++) {
		const text = '0123456789ABCDEF'.slice(start, start + 8).repeat(32 * 1024)
		t.equal(viewOfKey.text(text, 'event'), text, 'repeated parts of the key')
	}
	const redactor = openRedactor()
	const alike = 'a'.repeat(250)
	for (let n = 0; n < 50; n++) redactor.add(ada, { id: `id-${n}`, name: `KEY${n}`, value: `${alike}${n}` })
	const many = redactor.of([{ agent: 'ada' }])
	t.equal(many.text('a'.repeat(8 * 1024), 'event'), 'a'.repeat(8 * 1024))
	t.equal(many.text(`${alike}49.${alike}b`, 'event'), `[redacted:KEY49].${alike}b`)
})

void t.test('the search equals a comparison of each pattern at each position', async (t) => {
	const letters = fc.array(fc.constantFrom('a', 'b', 'é'), { minLength: 8, maxLength: 20 }).map((all) => all.join(''))
	const long = fc.tuple(letters, fc.nat(80)).map(([text, more]) => text + 'ab'.repeat(more))
	const pattern = fc.oneof(letters, long)
	fc.assert(
		fc.property(
			fc.uniqueArray(pattern, { minLength: 1, maxLength: 8 }),
			fc.array(fc.oneof(pattern, fc.nat(7))),
			(patterns, pieces) => {
				const text = pieces
					.map((piece) => (typeof piece === 'number' ? patterns[piece % patterns.length] : piece))
					.join('c'.repeat(pieces.length % 2))
				const found: string[] = []
				new PatternSearch(patterns).search(text, (_, index, start, end) => found.push(`${index} ${start} ${end}`))
				const expected = patterns.flatMap((one, index) => {
					const ranges: { start: number; end: number }[] = []
					for (let start = text.indexOf(one); start >= 0; start = text.indexOf(one, start + 1)) {
						const last = ranges.at(-1)
						if (last && last.end > start) last.end = start + one.length
						else ranges.push({ start, end: start + one.length })
					}
					return ranges.map(({ start, end }) => `${index} ${start} ${end}`)
				})
				return JSON.stringify(found.toSorted()) === JSON.stringify(expected.toSorted())
			},
		),
		{ numRuns: RUNS },
	)
	t.pass()
})
