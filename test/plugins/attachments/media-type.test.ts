import t from 'tap'
import { mediaTypeOf, partTypeOf } from '../../../plugins/attachments/media-type.ts'
import { isTextType } from '../../../sandbox/text-type.ts'
import { ogg, pdf, png, wav } from '../../support/files.ts'

const text = (words: string): Buffer => Buffer.from(words)
const utf16 = (words: string): Buffer => Buffer.from(`\ufeff${words}`, 'utf16le')
const mp4 = (brand: string): Buffer => Buffer.from(`\0\0\0\x18ftyp${brand}\0\0`, 'latin1')

const cases: [
	what: string,
	bytes: Buffer,
	about: { name?: string; media_type?: string },
	type: string,
	part: string,
][] = [
	['a png', png(), { media_type: 'text/html' }, 'image/png', 'image'],
	['a jpeg', Buffer.from('ffd8ffe000104a464946', 'hex'), {}, 'image/jpeg', 'image'],
	['a gif', text('GIF89a…'), {}, 'image/gif', 'image'],
	['a webp', text('RIFF1234WEBPVP8 '), {}, 'image/webp', 'image'],
	['a photo from a phone', mp4('heic'), {}, 'image/heic', 'image'],
	...['heim', 'heis', 'hevc', 'hevx'].map((brand): (typeof cases)[number] => [
		`an image of brand ${brand}`,
		mp4(brand),
		{},
		'image/heic',
		'image',
	]),
	['an avif', mp4('avif'), {}, 'image/avif', 'image'],
	['an animated avif', mp4('avis'), {}, 'image/avif', 'image'],
	['a pdf', pdf(), { media_type: 'image/png' }, 'application/pdf', 'file'],
	['a wav', wav(), {}, 'audio/wav', 'audio'],
	['a voice message', ogg(), { media_type: 'audio/ogg' }, 'audio/ogg', 'audio'],
	['an m4a', mp4('M4A '), {}, 'audio/mp4', 'audio'],
	['a video', mp4('isom'), { media_type: 'video/mp4' }, 'video/mp4', 'file'],
	['sound in mp4', mp4('isom'), { media_type: 'audio/mp4' }, 'audio/mp4', 'audio'],
	['an mp3', Buffer.from('ID3\x03', 'latin1'), {}, 'audio/mpeg', 'audio'],
	['text', text('Grüße'), { media_type: 'image/png' }, 'text/plain', 'file'],
	['text cut in the middle of a character', Buffer.from('Grü').subarray(0, 3), {}, 'text/plain', 'file'],
	['text of Windows', utf16('Grüße\r\n'), {}, 'text/plain', 'file'],
	['text of Windows, cut in the middle of a character', utf16('Grüße 🙂').subarray(0, -1), {}, 'text/plain', 'file'],
	['a table of Windows', utf16('a,b'), { name: 'a.csv' }, 'text/csv', 'file'],
	['big-endian text', utf16('Grüße').swap16(), {}, 'text/plain', 'file'],
	['html of Windows', utf16('<html>'), { media_type: 'text/plain' }, 'text/html', 'file'],
	['binary data that begins like text of Windows', utf16('a\0b'), {}, 'application/octet-stream', 'file'],
	['a table', text('a,b\n1,2'), { name: 'Report.CSV' }, 'text/csv', 'file'],
	['code', text('print(1)'), { media_type: 'text/x-python; charset=utf-8' }, 'text/x-python', 'file'],
	['svg that claims to be an image', text('<svg onload="x()">'), { media_type: 'image/png' }, 'image/svg+xml', 'file'],
	['svg after a prolog', text('<?xml version="1.0"?>\n<!-- x -->\n<svg>'), {}, 'image/svg+xml', 'file'],
	['svg after many comments', text(`${'<!---->'.repeat(60)}<svg>`), {}, 'image/svg+xml', 'file'],
	['comments that make a regular expression backtrack', text(`${'<!---->'.repeat(70)}x`), {}, 'text/plain', 'file'],
	['an unclosed comment', text('<!-- <svg>'), {}, 'text/plain', 'file'],
	['html', text('\n<!DOCTYPE html><p>'), { media_type: 'image/gif' }, 'text/html', 'file'],
	['a script', text('<script>alert(1)</script>'), { media_type: 'text/plain' }, 'text/html', 'file'],
	['other binary data', Buffer.from([0, 1, 2, 3]), { media_type: 'image/png' }, 'application/octet-stream', 'file'],
	[
		'binary with its own media type',
		Buffer.from([0, 1]),
		{ media_type: 'application/x-sqlite3' },
		'application/x-sqlite3',
		'file',
	],
	[
		'binary that claims to be markup',
		Buffer.from([0, 1]),
		{ media_type: 'application/xhtml+xml' },
		'application/octet-stream',
		'file',
	],
	[
		'a document',
		Buffer.from('PK\x03\x04', 'latin1'),
		{ media_type: 'application/vnd.oasis.opendocument.text' },
		'application/vnd.oasis.opendocument.text',
		'file',
	],
]

for (const [what, bytes, about, type, part] of cases)
	void t.test(what, (t) => {
		t.equal(mediaTypeOf(bytes, about), type)
		t.equal(partTypeOf(type), part)
		t.end()
	})

void t.test('text types are those that a model can read unchanged', (t) => {
	for (const type of ['text/plain', 'text/html', 'application/json', 'image/svg+xml']) t.ok(isTextType(type), type)
	for (const type of ['application/pdf', 'image/png', 'application/octet-stream']) t.notOk(isTextType(type), type)
	t.end()
})
