// A small issuer of accounts, at another address of this machine, so that a browser calls it another site: metadata, a page with one button, codes with PKCE, and a signed word about the person.
import crypto from 'node:crypto';
import http from 'node:http';

const CLIENT = 'studio-of-ours';

export class Issuer {
  static async start() {
    const issuer = new Issuer();
    issuer.roles = ['admins'];
    issuer.codes = new Map();
    /** Everything that must never be where the page could read it. */
    issuer.secrets = [];
    const { publicKey, privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
    issuer.privateKey = privateKey;
    issuer.jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' };
    issuer.server = http.createServer((request, response) => issuer.serve(request, response));
    await new Promise((resolve) => issuer.server.listen(0, '127.0.0.2', resolve));
    issuer.url = `http://127.0.0.2:${issuer.server.address().port}`;
    return issuer;
  }

  settings() {
    return `[studio.oauth]\nissuer = "${this.url}"\nclient_id = "${CLIENT}"\nscopes = ["openid", "email"]\nname_claim = "email"\nrole_claim = "realm.roles"\nowner = ["admins"]\n`;
  }

  serve(request, response) {
    const url = new URL(request.url, this.url);
    let body = '';
    request.on('data', (text) => (body += text));
    request.on('end', () => {
      if (url.pathname === '/authorize') return void this.page(url, response);
      const value = this.answer(url.pathname, new URLSearchParams(body));
      response.writeHead(value ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value ?? { error: 'invalid_grant' }));
    });
  }

  page(url, response) {
    const code = crypto.randomBytes(16).toString('hex');
    this.secrets.push(code);
    this.codes.set(code, url.searchParams);
    const back = new URL(url.searchParams.get('redirect_uri'));
    response.writeHead(200, { 'content-type': 'text/html' });
    const hidden = { code, state: url.searchParams.get('state'), iss: this.url, session_state: 'x' };
    const inputs = Object.entries(hidden).map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">`);
    response.end(`<!doctype html><html lang="en"><title>Issuer</title><form action="${back.href}">${inputs.join('')}<button>I am Ada</button></form>`);
  }

  answer(path, form) {
    if (path === '/.well-known/oauth-authorization-server') {
      return { issuer: this.url, authorization_endpoint: `${this.url}/authorize`, token_endpoint: `${this.url}/token`, jwks_uri: `${this.url}/keys`, code_challenge_methods_supported: ['S256'] };
    }
    if (path === '/keys') return { keys: [this.jwk] };
    if (path !== '/token') return undefined;
    const asked = this.codes.get(form.get('code'));
    this.codes.delete(form.get('code'));
    const challenge = crypto.createHash('sha256').update(form.get('code_verifier')).digest('base64url');
    if (!asked || asked.get('code_challenge') !== challenge || form.get('client_id') !== CLIENT) return undefined;
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: this.url, aud: CLIENT, sub: 'u-17', email: 'ada@example.com', nonce: asked.get('nonce'), iat: now, exp: now + 300, realm: { roles: this.roles } };
    const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const message = `${part({ alg: 'ES256', kid: 'one', typ: 'JWT' })}.${part(claims)}`;
    const signature = crypto.sign('sha256', Buffer.from(message), { key: this.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url');
    const token = `${message}.${signature}`;
    const access = crypto.randomBytes(16).toString('hex');
    this.secrets.push(token, access, form.get('code_verifier'));
    return { access_token: access, token_type: 'Bearer', expires_in: 300, id_token: token };
  }

  end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
