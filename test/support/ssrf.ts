/** Addresses that the gateway must not reach on behalf of others, in all spellings, and servers that detect connections. */
import { createServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { hostname } from 'node:os'
import type { Test } from 'tap'

/** IPv4 addresses that are not public, at least one of each range. */
const ipv4 = [
	'127.0.0.1', // loopback
	'127.255.255.254',
	'10.0.0.1', // private
	'172.16.0.1',
	'172.31.255.254',
	'192.168.0.1',
	'169.254.169.254', // link-local, where clouds hand out credentials
	'169.254.170.2',
	'168.63.129.16', // Azure, in a public range
	'100.64.0.1', // shared
	'100.100.100.200', // Alibaba, in the shared range
	'0.0.0.0', // this machine, to Linux
	'0.1.2.3',
	'192.0.0.192', // Oracle, in a reserved range
	'192.0.2.1', // documentation
	'198.51.100.1',
	'203.0.113.1',
	'198.18.0.1', // benchmarks
	'192.88.99.1', // 6to4 relays
	'224.0.0.1', // multicast
	'239.255.255.255',
	'240.0.0.1', // reserved
	'255.255.255.255', // broadcast
]

/** IPv6 addresses that are not public, at least one of each range. */
const ipv6 = [
	'::', // this machine, to Linux
	'::1',
	'0:0:0:0:0:0:0:1',
	'0000:0000:0000:0000:0000:0000:0000:0001',
	'0::0:1',
	'::2',
	'fc00::1', // private
	'fd00::1',
	'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
	'FD00:EC2::254', // Amazon
	'fd00:ec2::23',
	'fd20:ce::254', // Google
	'fe80::1', // link-local
	'febf::1',
	'fec0::1', // site-local
	'feff::1',
	'ff02::1', // multicast
	'ff0e::1',
	'100::1', // discard
	'64:ff9b::1', // NAT64
	'64:ff9b:1::1',
	'2001::1', // Teredo
	'2001:2::1', // benchmarks
	'2001:3::1', // AMT
	'2001:4:112::1', // AS112
	'2620:4f:8000::1',
	'2001:10::1', // ORCHID
	'2001:20::1',
	'2001:30::1', // drones
	'2001:1ff::1',
	'2001:db8::1', // documentation
	'3fff::1',
	'2002::1', // 6to4
	'5f00::1', // segment routing
	'4000::1', // unassigned
	'e000::1',
]

/** All notations of an IPv4 address that a URL parser, a resolver or a network accepts. */
function spellings(dotted: string): string[] {
	const octets = dotted.split('.').map(Number)
	const [a = 0, b = 0, c = 0, d = 0] = octets
	const number = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
	const hex = (n: number, digits: number): string => n.toString(16).padStart(digits, '0')
	const high = hex((a << 8) | b, 4)
	const low = hex((c << 8) | d, 4)
	const inverted = `${hex(~((a << 8) | b) & 0xffff, 4)}:${hex(~((c << 8) | d) & 0xffff, 4)}`
	return [
		dotted,
		`${dotted}.`,
		`${number}`,
		`0x${number.toString(16)}`,
		`0X${number.toString(16).toUpperCase()}`,
		`0${number.toString(8)}`,
		`0000000000000${number.toString(8)}`,
		octets.map((octet) => `0x${octet.toString(16)}`).join('.'),
		octets.map((octet) => `0${octet.toString(8)}`).join('.'),
		octets.map((octet) => `000000${octet.toString(8)}`).join('.'),
		`${a}.${(b << 16) | (c << 8) | d}`,
		`${a}.${b}.${(c << 8) | d}`,
		`0x${a.toString(16)}.0${b.toString(8)}.${(c << 8) | d}`,
		dotted.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
		dotted.replaceAll('.', '。'),
		dotted.replaceAll('.', '｡'),
		dotted.replaceAll(/\d/g, (digit) => String.fromCodePoint(0x1d7d8 + Number(digit))),
		dotted.replaceAll(/[1-9]/g, (digit) => String.fromCodePoint(0x2460 + Number(digit) - 1)),
		dotted.replaceAll('.', '%2e'),
		dotted.replaceAll(/\d/g, (digit) => `%3${digit}`),
		`[::ffff:${dotted}]`, // mapped
		`[::ffff:${high}:${low}]`,
		`[::FFFF:${high}:${low}]`,
		`[0:0:0:0:0:ffff:${dotted}]`,
		`[::${dotted}]`, // compatible
		`[::${high}:${low}]`,
		`[::ffff:0:${dotted}]`, // translated
		`[64:ff9b::${dotted}]`, // NAT64
		`[64:ff9b:1::${dotted}]`,
		`[2002:${high}:${low}::1]`, // 6to4
		`[2001:0:4136:e378:8000:63bf:${inverted}]`, // Teredo
	]
}

/** Ways to disguise an address in a URL. `:P` is replaced by the port. */
const disguises = [
	'http://localhost:P/',
	'http://LOCALHOST:P/',
	'http://LocalHost:P/',
	'http://localhost.:P/',
	'http://ｌｏｃａｌｈｏｓｔ:P/',
	'http://loc%61lhost:P/',
	'http://lo\tcal\nhost:P/',
	'http://127.0.0\n.1:P/',
	'  http://127.0.0.1:P/  ',
	'\u0000http://127.0.0.1:P/',
	'HTTP://127.0.0.1:P/',
	'hTtP:127.0.0.1:P/',
	'http:/127.0.0.1:P/',
	'http:////127.0.0.1:P/',
	'http:\\\\127.0.0.1:P\\',
	'http://127.0.0.1:P\\@example.com/',
	'http://127.0.0.1:P#@example.com/',
	'http://127.0.0.1:P?@example.com/',
	'http://127.0.0.1:P/@example.com/',
	'http://example.com@127.0.0.1:P/',
	'http://example.com:80@127.0.0.1:P/',
	'http://example.com%40127.0.0.1:P/',
	'http://example.com%2f@127.0.0.1:P/',
	'http://user:secret@127.0.0.1:P/',
	'http://:@127.0.0.1:P/',
	'http://@127.0.0.1:P/',
	'http://[::1]:P/',
	'http://[::1%25lo]:P/',
	'http://[fe80::1%25eth0]:P/',
	'http://[::]:P/',
	'http://127.1:P/',
	'http://127.000.000.001:P/',
	'http://0x7f.1:P/',
	'http://0177.1:P/',
	'http://017700000001:P/',
	'http://4294967297:P/', // does not fit; some parsers wrap it around
	'http://127.0.0.257:P/',
	'http://127.0.0.1.:P/',
	'http://127.0.0.1..:P/',
	'http://①②⑦.⓪.⓪.①:P/',
	'http://0:P/',
	'http://0x0:P/',
	'http://127。0。0。1:P/',
	'http://1\u00ad27.0.0.1:P/', // a soft hyphen, which is dropped
	'http://127.0.0.1\u200b:P/',
	'http://127.0.0.1:00000P/',
	'http://127.0.0.1:+P/',
	'http://127.0.0.1:P:80/',
	'http://127.0.0.1: P/',
	'https://127.0.0.1:P/',
	'https://localhost:P/',
	'https://[::ffff:7f00:1]:P/',
	'file:///etc/passwd',
	'file://127.0.0.1/etc/passwd',
	'ftp://127.0.0.1:P/',
	'gopher://127.0.0.1:P/_GET',
	'dict://127.0.0.1:P/info',
	'ws://127.0.0.1:P/',
	'unix:/var/run/docker.sock',
	'data:text/plain,hello',
	'data:text/markdown;base64,aGVsbG8=',
	'javascript:fetch("http://127.0.0.1:P/")',
	'blob:http://127.0.0.1:P/0',
	'blob:nodedata:0',
	'about:blank',
	'view-source:http://127.0.0.1:P/',
	'jar:http://127.0.0.1:P/!/',
	'//127.0.0.1:P/',
	'127.0.0.1:P',
	'localhost:P',
	'http://',
	'http://:P/',
	'http://?',
]

/** At least 800 URLs that callers without the scope `*` may not reach; those of this machine have `port`. */
export function hostileUrls(port: number): string[] {
	const hosts = [...ipv4.flatMap(spellings), ...ipv6.map((address) => `[${address}]`)]
	const urls = [
		...hosts.map((host) => `http://${host}:${port}/`),
		...disguises.map((url) => url.replace(':P', `:${port}`)),
	]
	return [...new Set(urls)]
}

/** Names that this machine's resolver may resolve to itself; some are unknown on some machines. */
export function ownNames(port: number): string[] {
	const names = [hostname(), 'ip6-localhost', 'ip6-loopback', 'localhost.localdomain', 'x.localhost']
	return names.map((name) => `http://${name}:${port}/`)
}

/** One address of each family and each kind of disguise, for tests with expensive requests. */
export function hostileTargets(port: number): string[] {
	return [
		`http://127.0.0.1:${port}/`,
		`//127.0.0.1:${port}/`,
		`\\\\127.0.0.1:${port}\\`,
		`http://localhost:${port}/`,
		`http://2130706433:${port}/`,
		`http://0x7f.1:${port}/`,
		`http://0.0.0.0:${port}/`,
		`http://[::1]:${port}/`,
		`http://[::]:${port}/`,
		`http://[::ffff:127.0.0.1]:${port}/`,
		`http://[::7f00:1]:${port}/`,
		`http://[64:ff9b::7f00:1]:${port}/`,
		`http://[2002:7f00:1::1]:${port}/`,
		`http://[2001:0:4136:e378:8000:63bf:80ff:fffe]:${port}/`,
		`http://10.0.0.1:${port}/`,
		`http://172.16.0.1:${port}/`,
		`http://192.168.0.1:${port}/`,
		`http://169.254.169.254/latest/meta-data/`,
		`http://168.63.129.16/`,
		`http://100.64.0.1:${port}/`,
		`http://[fd00:ec2::254]/`,
		`http://[fe80::1]:${port}/`,
		`http://224.0.0.1:${port}/`,
		`http://user:secret@127.0.0.1:${port}/`,
		`file:///etc/passwd`,
		`data:text/plain,hello`,
		`javascript:alert(1)`,
		`ftp://127.0.0.1:${port}/`,
	]
}

export interface Canary {
	port: number
	/** The number of connections. */
	touched(): number
}

/** Listens at one port of all local addresses, and counts connections. */
export async function startCanary(t: Test): Promise<Canary> {
	let touched = 0
	const servers: Server[] = []
	const listen = async (host: string, port: number): Promise<number> => {
		const server = createServer((socket) => {
			touched++
			socket.on('error', () => {}).resume()
			socket.end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\ncanary')
		})
		servers.push(server)
		await new Promise<void>((resolve, reject) => {
			server.once('error', reject)
			server.listen({ host, port, ipv6Only: true }, resolve)
		})
		return (server.address() as AddressInfo).port
	}
	t.teardown(() => Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve)))))
	const port = await listen('0.0.0.0', 0)
	await listen('::', port).catch(() => {}) // a machine without IPv6
	return { port, touched: () => touched }
}
